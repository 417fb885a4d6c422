//! Models that are stored in several files, `NAME-00001-of-00003.gguf` and so on.

use std::path::{Path, PathBuf};

use crate::problem::shown;
use crate::{Gguf, Header, InspectError, MOST_TENSORS, Part, Problem, read_file};

/// The most files of a model.
const MOST_PARTS: u64 = 1 << 12;

/// What a file says about the set that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Split {
    /// Which file it is, from 0 on.
    number: usize,
    /// How many files there are, at least two.
    count: usize,
    /// How many tensors are in all of them together.
    tensors: u64,
}

impl Split {
    /// What `header` says; `None`: the file is whole by itself.
    pub(crate) fn of(header: &Header) -> Result<Option<Self>, Problem> {
        let number = |key: &str| header.metadata.get(key).map(|value| (key.to_owned(), value));
        let count = match number("split.count") {
            None => return Ok(None),
            Some((_, value)) => value.as_u64().filter(|count| *count <= MOST_PARTS),
        };
        let count = count.ok_or_else(|| Problem::malformed("its number of files is impossible"))?;
        if count < 2 {
            return Ok(None);
        }
        let whole = |key: &str| {
            let value = header.metadata.get(key).and_then(|value| value.as_u64());
            value.ok_or_else(|| Problem::malformed(format!("`{key}` is missing or impossible")))
        };
        let own = whole("split.no")?;
        if own >= count {
            return Err(Problem::malformed(format!("it is file {own} of {count}, from 0 on")));
        }
        let tensors = whole("split.tensors.count")?;
        Ok(Some(Self { number: own as usize, count: count as usize, tensors }))
    }
}

/// Reads the other files of the set to which the file at `path` belongs.
pub(crate) fn read_set(
    path: &Path,
    (header, bytes): (Header, u64),
    split: Split,
) -> Result<Gguf, InspectError> {
    let refuse = |path: &Path, problem| InspectError { path: path.to_owned(), problem };
    let paths = paths(path, split).map_err(|problem| refuse(path, problem))?;
    let missing: Vec<String> = paths
        .iter()
        .filter(|each| !each.exists())
        .filter_map(|each| Some(each.file_name()?.to_string_lossy().into_owned()))
        .collect();
    if !missing.is_empty() {
        return Err(refuse(path, Problem::MissingParts { count: split.count, missing }));
    }
    let mut known = Some((header, bytes));
    let mut whole: Option<Gguf> = None;
    for (number, part) in paths.into_iter().enumerate() {
        let taken = if number == split.number { known.take() } else { None };
        let (header, bytes) = match taken {
            Some(known) => known,
            None => read_file(&part).map_err(|problem| refuse(&part, problem))?,
        };
        let belongs = Split { number, ..split };
        match Split::of(&header).map_err(|problem| refuse(&part, problem))? {
            Some(other) if other == belongs => {}
            other => return Err(refuse(&part, other_set(other, belongs))),
        }
        match &mut whole {
            None => whole = Some(Gguf::of(header, Part { path: part, bytes })),
            Some(whole) => {
                let at = part.clone();
                whole
                    .add(header, Part { path: part, bytes })
                    .map_err(|problem| refuse(&at, problem))?;
            }
        }
    }
    let whole = whole
        .ok_or_else(|| refuse(path, Problem::malformed("its number of files is impossible")))?;
    if whole.tensors.len() as u64 != split.tensors {
        let problem = Problem::OtherSet(format!(
            "they hold {} tensors, and should hold {}",
            whole.tensors.len(),
            split.tensors
        ));
        return Err(refuse(path, problem));
    }
    Ok(whole)
}

impl Gguf {
    /// Adds what a further file of the model holds. The metadata is in the first file.
    fn add(&mut self, header: Header, part: Part) -> Result<(), Problem> {
        let architecture = header.metadata.get("general.architecture");
        if let Some(other) = architecture.and_then(|value| value.as_str())
            && Some(other) != self.architecture()
        {
            return Err(Problem::OtherSet(format!("this one is of a `{}` model", shown(other))));
        }
        if self.tensors.len() + header.tensors.len() > MOST_TENSORS as usize {
            return Err(Problem::malformed("its files declare too many tensors"));
        }
        for (name, mut tensor) in header.tensors {
            tensor.part = self.parts.len();
            if self.tensors.contains_key(&name) {
                let name = shown(&name);
                return Err(Problem::OtherSet(format!("two of them hold the tensor `{name}`")));
            }
            self.tensors.insert(name, tensor);
        }
        self.file_bytes = self.file_bytes.saturating_add(part.bytes);
        self.parts.push(part);
        Ok(())
    }
}

fn other_set(found: Option<Split>, expected: Split) -> Problem {
    Problem::OtherSet(match found {
        None => "this one is a whole model by itself".to_owned(),
        Some(found) if (found.number, found.count) != (expected.number, expected.count) => {
            format!(
                "this one is file {} of {}, not {} of {}",
                found.number + 1,
                found.count,
                expected.number + 1,
                expected.count
            )
        }
        Some(found) => format!(
            "this one is of a model with {} tensors, not {}",
            found.tensors, expected.tensors
        ),
    })
}

/// The paths of all files of the set, in their order.
fn paths(path: &Path, split: Split) -> Result<Vec<PathBuf>, Problem> {
    let own = suffix(split.number, split.count);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(stem) = name.strip_suffix(own.as_str()) else {
        return Err(Problem::PartName {
            number: split.number + 1,
            count: split.count,
            expected: format!("NAME{own}"),
        });
    };
    Ok((0..split.count)
        .map(|number| path.with_file_name(format!("{stem}{}", suffix(number, split.count))))
        .collect())
}

/// How the name of a part ends.
fn suffix(number: usize, count: usize) -> String {
    format!("-{:05}-of-{count:05}.gguf", number + 1)
}
