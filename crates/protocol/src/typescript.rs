//! The wire types as TypeScript, for the desktop's front end.

use ts_rs::{Config, TS};

use crate::{ClientMessage, ServerFrame};

/// The text of `ui/src/wire.ts`: every type that a [`ClientMessage`] or a [`ServerFrame`] reaches.
pub fn declarations() -> String {
    let config = Config::default();
    let mut types = std::collections::BTreeMap::new();
    collect::<ClientMessage>(&config, &mut types);
    collect::<ServerFrame>(&config, &mut types);
    let mut text = String::from(
        "// Generated from crates/protocol by `UPDATE_WIRE=1 cargo test -p correx-protocol`.\n",
    );
    for declaration in types.values() {
        text.push_str("\nexport ");
        text.push_str(declaration);
        text.push('\n');
    }
    text
}

type Declarations = std::collections::BTreeMap<String, String>;

fn collect<T: TS + 'static + ?Sized>(config: &Config, types: &mut Declarations) {
    struct Visitor<'a>(&'a Config, &'a mut Declarations);
    impl ts_rs::TypeVisitor for Visitor<'_> {
        fn visit<T: TS + 'static + ?Sized>(&mut self) {
            if T::output_path().is_some() {
                collect::<T>(self.0, self.1);
            }
        }
    }
    let name = T::ident(config);
    if types.contains_key(&name) {
        return;
    }
    types.insert(name, T::decl(config));
    T::visit_dependencies(&mut Visitor(config, types));
}
