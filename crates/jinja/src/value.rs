//! What templates compute with: Python's values, as far as templates know them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::ast::Macro;
use crate::error::Error;
use crate::fuel::Fuel;
use crate::interpreter::Scope;
use crate::text::{Origin, Text};

/// How deeply lists and dictionaries may hold one another.
const DEPTH: u32 = 60;

/// A value. Cheap to clone. Lists and dictionaries never change.
#[derive(Debug, Clone)]
pub enum Value {
    /// A name or attribute that is not there.
    Undefined,
    /// `none`.
    None,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Text(Rc<Text>),
    /// A list or tuple.
    List(Rc<List>),
    /// A dictionary, in the order of insertion.
    Dict(Rc<Dict>),
    /// What only the interpreter makes.
    Object(Object),
}

/// Things that cannot be written down.
#[derive(Debug, Clone)]
pub struct Object(pub(crate) Kind);

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// `namespace()`: the one thing that changes.
    Namespace(Rc<Namespace>),
    /// `loop`.
    Loop(Rc<Loop>),
    Macro(Rc<MacroValue>),
    Function(&'static str),
    /// A method of a value, not called yet.
    Method(Rc<(Value, &'static str)>),
}

/// A list or tuple.
#[derive(Debug)]
pub struct List {
    pub(crate) items: Vec<Value>,
    pub(crate) tuple: bool,
    depth: u32,
}

/// A dictionary.
#[derive(Debug)]
pub struct Dict {
    pub(crate) items: Vec<(Value, Value)>,
    depth: u32,
}

#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) items: RefCell<Vec<(Box<str>, Value)>>,
}

/// Where a loop is.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) items: Rc<List>,
    pub(crate) index: usize,
    /// What `changed()` was last given.
    pub(crate) last: Rc<RefCell<Option<Value>>>,
}

#[derive(Debug)]
pub(crate) struct MacroValue {
    pub(crate) code: Arc<Macro>,
    pub(crate) scope: Rc<Scope>,
}

impl Value {
    /// Text from `origin`.
    pub fn text(text: impl Into<String>, origin: Origin) -> Self {
        Self::Text(Rc::new(Text::from_origin(text, origin)))
    }

    /// A list of `items`.
    pub fn list(items: Vec<Self>, fuel: &Fuel) -> Result<Self, Error> {
        Self::sequence(items, false, fuel)
    }

    /// A dictionary of `items`; of equal keys the last one counts, in the first one's place.
    pub fn dict(items: Vec<(Self, Self)>, fuel: &Fuel) -> Result<Self, Error> {
        fuel.items(items.len().saturating_mul(2))?;
        let mut dict = Dict { items: Vec::with_capacity(items.len()), depth: 0 };
        for (key, value) in items {
            dict.depth = dict.depth.max(key.depth() + 1).max(value.depth() + 1);
            let same = match dict.items.is_empty() {
                true => None,
                false => dict.position(&key, fuel)?,
            };
            match same {
                Some(place) => dict.items[place].1 = value,
                None => dict.items.push((key, value)),
            }
        }
        if dict.depth > DEPTH {
            return Err(Error::limit("it nests too deeply"));
        }
        Ok(Self::Dict(Rc::new(dict)))
    }

    pub(crate) fn sequence(items: Vec<Self>, tuple: bool, fuel: &Fuel) -> Result<Self, Error> {
        fuel.items(items.len())?;
        let depth = items.iter().map(Self::depth).max().map_or(0, |depth| depth + 1);
        if depth > DEPTH {
            return Err(Error::limit("it nests too deeply"));
        }
        Ok(Self::List(Rc::new(List { items, tuple, depth })))
    }

    fn depth(&self) -> u32 {
        match self {
            Self::List(list) => list.depth,
            Self::Dict(dict) => dict.depth,
            Self::Object(Object(Kind::Method(method))) => method.0.depth() + 1,
            _ => 0,
        }
    }

    pub(crate) fn object(kind: Kind) -> Self {
        Self::Object(Object(kind))
    }

    pub(crate) fn made(text: Text, fuel: &Fuel) -> Result<Self, Error> {
        fuel.text(text.size())?;
        Ok(Self::Text(Rc::new(text)))
    }

    /// What Python calls the type.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::None => "none",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "integer",
            Self::Float(_) => "float",
            Self::Text(_) => "string",
            Self::List(list) if list.tuple => "tuple",
            Self::List(_) => "list",
            Self::Dict(_) => "dictionary",
            Self::Object(Object(Kind::Namespace(_))) => "namespace",
            Self::Object(Object(Kind::Loop(_))) => "loop",
            Self::Object(_) => "function",
        }
    }

    /// Whether Python takes it for true.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Self::Undefined | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Dict(dict) => !dict.items.is_empty(),
            Self::Object(_) => true,
        }
    }

    /// The whole number that it is, a boolean too.
    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            other => other.as_int().map(|value| value as f64),
        }
    }

    pub(crate) fn as_text(&self) -> Option<&Rc<Text>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What a loop over it runs through.
    pub(crate) fn elements(&self, fuel: &Fuel) -> Result<Rc<List>, Error> {
        let items = match self {
            Self::List(list) => return Ok(list.clone()),
            Self::Undefined => Vec::new(),
            Self::Dict(dict) => dict.items.iter().map(|(key, _)| key.clone()).collect(),
            Self::Text(text) => {
                // Every character becomes a text.
                fuel.burn(text.len() as u64 * 16)?;
                text.chars()
                    .map(|(_, character, origin)| Self::text(character.to_string(), origin))
                    .collect()
            }
            other => return Err(Error::failed(format!("{} has no elements", other.kind()))),
        };
        match Self::list(items, fuel)? {
            Self::List(list) => Ok(list),
            _ => Err(Error::failed("no list")),
        }
    }

    /// Whether Python finds them equal.
    pub(crate) fn equals(&self, other: &Self, fuel: &Fuel) -> Result<bool, Error> {
        fuel.burn(1)?;
        Ok(match (self, other) {
            (Self::Undefined, Self::Undefined) | (Self::None, Self::None) => true,
            (Self::Text(left), Self::Text(right)) => {
                fuel.look(left.len().min(right.len()))?;
                left.as_str() == right.as_str()
            }
            (Self::List(left), Self::List(right)) => {
                if left.tuple != right.tuple || left.items.len() != right.items.len() {
                    return Ok(false);
                }
                for (left, right) in left.items.iter().zip(&right.items) {
                    if !left.equals(right, fuel)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Self::Dict(left), Self::Dict(right)) => {
                if left.items.len() != right.items.len() {
                    return Ok(false);
                }
                for (key, value) in &left.items {
                    match right.get(key, fuel)? {
                        Some(other) if value.equals(&other, fuel)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
            (Self::Object(left), Self::Object(right)) => match (&left.0, &right.0) {
                (Kind::Namespace(left), Kind::Namespace(right)) => Rc::ptr_eq(left, right),
                (Kind::Macro(left), Kind::Macro(right)) => Rc::ptr_eq(left, right),
                (Kind::Loop(left), Kind::Loop(right)) => Rc::ptr_eq(left, right),
                (Kind::Function(left), Kind::Function(right)) => left == right,
                _ => false,
            },
            (left, right) => match (left.as_int(), right.as_int()) {
                (Some(left), Some(right)) => left == right,
                _ => match (left.as_float(), right.as_float()) {
                    (Some(left), Some(right)) => left == right,
                    _ => false,
                },
            },
        })
    }
}

impl Dict {
    fn position(&self, key: &Value, fuel: &Fuel) -> Result<Option<usize>, Error> {
        for (place, (own, _)) in self.items.iter().enumerate() {
            if own.equals(key, fuel)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    pub(crate) fn get(&self, key: &Value, fuel: &Fuel) -> Result<Option<Value>, Error> {
        Ok(self.position(key, fuel)?.map(|place| self.items[place].1.clone()))
    }

    /// The value of a key that is text.
    pub(crate) fn named(&self, name: &str) -> Option<Value> {
        self.items
            .iter()
            .find(|(key, _)| key.as_text().is_some_and(|key| key.as_str() == name))
            .map(|(_, value)| value.clone())
    }
}
