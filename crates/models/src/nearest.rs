//! The name that somebody may have meant.

/// Of the `known` names the one that `typed` most likely means: a part of it, or nearly it, or
/// nearly its beginning. Letters and digits count, in any case.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = bare(typed);
    if wanted.len() < 3 || wanted.len() > LONGEST {
        return None;
    }
    let allowed = (wanted.len() / 4).max(1);
    let far = |name: &str| {
        let name = bare(name);
        let distance = |length: usize| {
            strsim::damerau_levenshtein(
                &wanted.iter().collect::<String>(),
                &name[..length.min(name.len())].iter().collect::<String>(),
            )
        };
        if name.windows(wanted.len()).any(|part| part == wanted) {
            return Some(0);
        }
        let lengths = [wanted.len() - 1, wanted.len(), wanted.len() + 1, name.len()];
        lengths.into_iter().map(distance).min().filter(|distance| *distance <= allowed)
    };
    let distances = known.into_iter().filter_map(|name| Some((far(name)?, name)));
    // Of equal ones the first.
    distances.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Names are never longer.
const LONGEST: usize = 100;

fn bare(name: &str) -> Vec<char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;

    #[test]
    fn whoever_types_nearly_a_name_means_it_and_what_is_far_means_none() {
        let catalogue = Catalogue::embedded().unwrap();
        let ids = || catalogue.models().iter().map(|model| model.id.as_str());
        for (typed, meant) in [
            ("qwen3-4b", Some("qwen3-4b-q4_k_m")),
            ("Qwen3 4B", Some("qwen3-4b-q4_k_m")),
            ("qwen34b", Some("qwen3-4b-q4_k_m")),
            ("qwen3-4b-q4_k_n", Some("qwen3-4b-q4_k_m")),
            ("smolm2-135m", Some("smollm2-135m-instruct-q4_1")),
            ("135m", Some("smollm2-135m-instruct-q4_1")),
            ("gema-3-12b", Some("gemma-3-12b-it-q4_k_m")),
            ("nothing", None),
            ("", None),
            ("--", None),
            ("日本語のモデル", None),
            (&"q".repeat(5000), None),
        ] {
            assert_eq!(nearest(typed, ids()), meant, "{typed}");
        }
    }
}
