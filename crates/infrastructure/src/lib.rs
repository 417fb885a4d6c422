//! Wiring: builds the pieces into one handle that every front end uses.
//!
//! # Layout
//! - [`app`]: [`App`], the product's operations over one data directory.
//! - [`link`]: [`Client`], the same operations from any process: the first on a data directory
//!   owns it, the others talk to the owner over a local socket that only its user can open.
//! - [`engine`]: [`Engine`], the model: found, loaded in the background, waited for.
//! - [`holdings`]: [`Holdings`], which models there are, and getting more.
//! - [`facade`]: [`create_router_facade`], the router wired.
//! - [`policy`]: what workflows may do outside of Correx, as the person wrote it.
//! - [`settings`]: [`Settings`], what a person may set.
//! - [`examples`]: the workflows that Correx brings.
//! - [`view`]: from the domain to the wire format; [`failure`]: errors as people meet them.
//! - [`pushes`]: what front ends are told without asking.
//! - [`passing`]: conversations that end with the program.
//!
//! No front end sees a domain type: what goes in is a `ClientMessage`, what comes out is a
//! `ServerMessage`.

pub mod app;
pub mod engine;
pub mod examples;
pub mod facade;
pub mod failure;
pub mod holdings;
pub mod link;
pub mod passing;
pub mod policy;
pub mod pushes;
pub mod settings;
mod tasks;
pub mod view;

pub use app::{App, AppParts};
pub use correx_models as models;
pub use correx_orchestration::workflow::workflow_schema;
pub use engine::{Engine, Loading, ModelManager};
pub use facade::{RouterSurroundings, create_router_facade};
pub use holdings::Holdings;
pub use link::{Client, ConnectOptions};
pub use pushes::Pushes;
pub use settings::Settings;
