//! XML as a flow of elements and text.

use std::collections::BTreeMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::DocumentError;
use crate::document::broken;

/// One step through a part. Names are without their prefix: what matters here is unambiguous.
pub(super) enum Step<'a> {
    Start(&'a str, Attributes),
    End(&'a str),
    Text(&'a str),
}

/// An element's attributes, without their prefixes.
#[derive(Default)]
pub(super) struct Attributes(BTreeMap<String, String>);

impl Attributes {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether a property that is switched by its presence is on.
    pub(super) fn is_on(&self) -> bool {
        !matches!(self.get("val"), Some("0" | "false" | "off" | "none"))
    }

    fn of(element: &BytesStart<'_>) -> Self {
        let mut all = BTreeMap::new();
        // Word writes a handful; a hostile part may write thousands.
        for attribute in element.attributes().with_checks(false).flatten().take(64) {
            let name = attribute.key.local_name();
            let value = quick_xml::escape::unescape(&attribute.value);
            let value = value.map(|value| value.into_owned()).unwrap_or_default();
            all.entry(name.as_ref().to_owned()).or_insert(value);
        }
        Self(all)
    }
}

/// Walks through `text`, which ends the walk early by returning `false` from `step`.
pub(super) fn walk(
    text: &str,
    mut step: impl FnMut(Step<'_>) -> Result<(), DocumentError>,
) -> Result<(), DocumentError> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    loop {
        let event = reader.read_event().map_err(|error| {
            let at = reader.error_position();
            broken("DOCX", format!("its XML ends at byte {at}: {error}"))
        })?;
        match event {
            Event::Start(element) => {
                step(Step::Start(element.local_name().as_ref(), Attributes::of(&element)))?;
            }
            Event::Empty(element) => {
                let name = element.local_name();
                step(Step::Start(name.as_ref(), Attributes::of(&element)))?;
                step(Step::End(name.as_ref()))?;
            }
            Event::End(element) => step(Step::End(element.local_name().as_ref()))?,
            Event::Text(text) => step(Step::Text(&text.xml10_content()))?,
            Event::CData(text) => step(Step::Text(&text))?,
            Event::GeneralRef(name) => {
                let character = format!("&{};", &*name);
                // An entity that the part declares itself stands for nothing.
                if let Ok(text) = quick_xml::escape::unescape(&character) {
                    step(Step::Text(&text))?;
                }
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// A part's text: UTF-8, or UTF-16 with a byte-order mark.
pub(super) fn decoded(bytes: Vec<u8>) -> Result<String, DocumentError> {
    let (text, _, is_broken) = encoding_rs::UTF_8.decode(&bytes);
    match is_broken {
        true => Err(broken("DOCX", "its XML is not UTF-8")),
        false => Ok(text.into_owned()),
    }
}
