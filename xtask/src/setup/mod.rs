//! `cargo xtask setup`: whatever building, running and testing need. What is there already is left
//! alone; when nothing is missing, nothing is installed and no connection is opened.

mod model;
mod modules;
mod node;
mod python;
mod system;

use crate::catalog::{Catalog, CatalogError};
use crate::workspace::Workspace;

pub(crate) use model::{ModelError, ModelState};
pub(crate) use modules::ModulesError;
pub(crate) use node::{Node, NodeError};
pub(crate) use python::PYTHON;
pub(crate) use system::SystemError;

/// How much is to be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What building and running need.
    Running,
    /// What the tests need as well: a display without a screen, a driver for the window.
    Everything,
}

/// Why setup could not finish. What was done before stays done; running it again goes on from there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    System(#[from] SystemError),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Modules(#[from] ModulesError),
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// What setup leaves behind for the chores that stand on it.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    /// The Node.js to build the front end with.
    pub(crate) node: Node,
    /// The default model's file, checked against the catalogue.
    pub(crate) model: std::path::PathBuf,
}

/// Sets the machine and the repository up for `scope`.
pub(crate) fn setup(workspace: &Workspace, scope: Scope) -> Result<Ready, SetupError> {
    println!("── setup ──");
    let catalog = Catalog::read(&workspace.catalog())?;
    let model = catalog.default_model();
    let model_state = model::look(workspace.models(), model)?;
    let node = Node::find(workspace);

    // pip is wanted only by what is fetched with it.
    let fetching = match (&model_state, &node) {
        (ModelState::Ready, Some(_)) => system::Fetching::Nothing,
        _ => system::Fetching::WithPip,
    };
    system::install(scope, fetching)?;
    let node = match node {
        Some(node) => node,
        None => Node::fetch(workspace)?,
    };
    println!("   Node.js: {}", node.describe());
    modules::install(workspace, &node)?;
    let model = model::install(workspace.models(), model, model_state)?;
    Ok(Ready { node, model })
}
