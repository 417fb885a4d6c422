//! Numbers of a file's metadata, checked for sense.

use correx_gguf::{Gguf, Value};

use super::ConfigError;

/// The metadata of one family: keys are given without the family's name in front.
pub(super) struct Keys<'a> {
    pub(super) gguf: &'a Gguf,
    pub(super) family: &'a str,
}

impl<'a> Keys<'a> {
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.family)
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.gguf.metadata.get(&self.key(name))
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.value(name).and_then(Value::as_str)
    }

    /// A count from 1 to `most`.
    pub(super) fn optional(&self, name: &str, most: u64) -> Result<Option<usize>, ConfigError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match value.as_u64() {
            Some(number) if (1..=most).contains(&number) => Ok(Some(number as usize)),
            _ => Err(self.senseless(name, value)),
        }
    }

    pub(super) fn required(&self, name: &str, most: u64) -> Result<usize, ConfigError> {
        self.optional(name, most)?.ok_or_else(|| self.missing(name))
    }

    /// A count from 1 to `most` that every layer has in common, also where the file lists it
    /// layer by layer.
    pub(super) fn of_layers(
        &self,
        name: &str,
        most: u64,
        layers: usize,
    ) -> Result<Option<usize>, ConfigError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let Some(list) = value.as_numbers().filter(|list| list.len() >= layers) else {
            return self.optional(name, most);
        };
        let mut numbers = list.iter().take(layers);
        let first = numbers.next().and_then(|number| u64::try_from(number).ok());
        let Some(first) = first.filter(|number| (1..=most).contains(number)) else {
            return Err(self.senseless(name, value));
        };
        match numbers.all(|number| u64::try_from(number) == Ok(first)) {
            true => Ok(Some(first as usize)),
            false => Err(ConfigError::Unsupported(format!(
                "another `{}` in every layer",
                self.key(name)
            ))),
        }
    }

    /// A count from 1 to `most` that some layers have in common, and which layers have none.
    pub(super) fn of_some_layers(
        &self,
        name: &str,
        most: u64,
        layers: usize,
    ) -> Result<(Option<usize>, Vec<bool>), ConfigError> {
        let list = self.value(name).and_then(Value::as_numbers);
        let Some(list) = list.filter(|list| list.len() >= layers) else {
            return Ok((self.optional(name, most)?, vec![false; layers]));
        };
        let mut common = None;
        let mut none = Vec::with_capacity(layers);
        for number in list.iter().take(layers) {
            none.push(number == 0);
            if number == 0 {
                continue;
            }
            let number = usize::try_from(number).ok().filter(|number| *number as u64 <= most);
            match (number, common) {
                (None, _) => {
                    let name = self.key(name);
                    return Err(ConfigError::Damaged(format!("`{name}` makes no sense")));
                }
                (Some(number), Some(other)) if number != other => {
                    return Err(ConfigError::Unsupported(format!(
                        "another `{}` in every layer",
                        self.key(name)
                    )));
                }
                (Some(number), _) => common = Some(number),
            }
        }
        Ok((common, none))
    }

    /// A count that may be zero.
    pub(super) fn count(&self, name: &str) -> Result<Option<usize>, ConfigError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match value.as_u64().and_then(|number| usize::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.senseless(name, value)),
        }
    }

    /// A number of at least zero.
    pub(super) fn float(&self, name: &str) -> Result<Option<f64>, ConfigError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match value.as_f64() {
            Some(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
            _ => Err(self.senseless(name, value)),
        }
    }

    /// A number above zero; zero counts as not given.
    pub(super) fn positive(&self, name: &str) -> Result<Option<f64>, ConfigError> {
        Ok(self.float(name)?.filter(|number| *number > 0.0))
    }

    pub(super) fn missing(&self, name: &str) -> ConfigError {
        ConfigError::Damaged(format!("`{}` is missing", self.key(name)))
    }

    pub(super) fn senseless(&self, name: &str, value: &Value) -> ConfigError {
        ConfigError::Damaged(format!("`{}` is {value}", self.key(name)))
    }
}
