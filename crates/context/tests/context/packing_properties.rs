//! What packing promises for whatever it is given.

use std::collections::BTreeSet;

use correx_context::testing::WordEncoder;
use correx_context::{
    Candidate, ContextLayer, ContextPack, DropReason, PackError, PromptEncoder, Role, SourceType,
    pack,
};
use proptest::prelude::*;

use crate::encoders::{CountedEncoder, PairEncoder};
use crate::given::{contents, cost, request};

const GROUPS: usize = 6;

/// Candidates in any order: some never go, the others in up to six groups, each of one layer, whose
/// numbers have gaps.
fn any_candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let layer = prop::sample::select(vec![ContextLayer::L1, ContextLayer::L2]);
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant]);
    let separator = prop::sample::select(vec!["", "\n\n", " or else "]);
    let text = prop::collection::vec(prop::sample::select(vec!["a", "b", "word"]), 0..6)
        .prop_map(|words| words.join(" "));
    let one = (prop::option::of(0..GROUPS), role, separator, text);
    let all = prop::collection::vec(one, 0..16);
    (prop::collection::vec(layer, GROUPS), all).prop_map(|(layers, all)| {
        all.into_iter()
            .enumerate()
            .map(|(index, (group, role, separator, content))| Candidate {
                layer: group.map_or(ContextLayer::L0, |group| layers[group]),
                source: SourceType::Input(format!("number {index}")),
                role,
                content,
                separator,
                drop_group: group.map(|group| group * 3 + 1),
            })
            .collect()
    })
}

/// What stays when the lowest `dropped` groups go.
fn without(candidates: &[Candidate], dropped: usize) -> Vec<Candidate> {
    let gone: BTreeSet<usize> = groups(candidates).into_iter().take(dropped).collect();
    let stays =
        |candidate: &&Candidate| !candidate.drop_group.is_some_and(|group| gone.contains(&group));
    candidates.iter().filter(stays).cloned().collect()
}

fn groups(candidates: &[Candidate]) -> BTreeSet<usize> {
    candidates.iter().filter_map(|candidate| candidate.drop_group).collect()
}

fn layer_of(candidates: &[Candidate], nth: usize) -> Option<ContextLayer> {
    let group = groups(candidates).into_iter().nth(nth)?;
    candidates.iter().find(|candidate| candidate.drop_group == Some(group)).map(|found| found.layer)
}

/// How many groups go by the rules, found one by one; `None`: it cannot fit.
fn expected_drops(candidates: &[Candidate], limit: usize) -> Option<usize> {
    let all = groups(candidates).len();
    let least = (0..=all).find(|dropped| cost(&without(candidates, *dropped)) <= limit)?;
    let of_conversation = |nth| layer_of(candidates, nth) == Some(ContextLayer::L1);
    let spare = least > 0 && of_conversation(least - 1) && of_conversation(least);
    Some(least + usize::from(spare))
}

/// Which candidates a pack kept, by their place, each layer's in order.
fn kept(pack: &ContextPack) -> Vec<SourceType> {
    pack.entries().map(|entry| entry.source.clone()).collect()
}

fn by_layer(candidates: &[Candidate]) -> Vec<SourceType> {
    let mut sorted: Vec<&Candidate> = candidates.iter().collect();
    sorted.sort_by_key(|candidate| candidate.layer);
    sorted.into_iter().map(|candidate| candidate.source.clone()).collect()
}

/// What holds of every pack, whatever the encoder.
fn check(
    pack: &ContextPack,
    candidates: &[Candidate],
    limit: usize,
) -> Result<usize, TestCaseError> {
    prop_assert!(pack.budget_used <= limit);
    prop_assert_eq!(pack.budget_limit, limit);
    prop_assert_eq!(pack.budget_used, pack.prompt.total());
    prop_assert_eq!(pack.budget_used, pack.prompt.ids.len());

    // The lowest groups go, whole, and nothing else; what stays keeps its order.
    let gone: BTreeSet<usize> = candidates
        .iter()
        .filter(|candidate| {
            pack.dropped.iter().any(|dropped| dropped.entry.source == candidate.source)
        })
        .filter_map(|candidate| candidate.drop_group)
        .collect();
    let staying = without(candidates, gone.len());
    prop_assert_eq!(kept(pack), by_layer(&staying));
    let left_out: Vec<SourceType> = candidates
        .iter()
        .filter(|candidate| !staying.contains(candidate))
        .map(|candidate| candidate.source.clone())
        .collect();
    let reported: Vec<SourceType> =
        pack.dropped.iter().map(|dropped| dropped.entry.source.clone()).collect();
    prop_assert_eq!(&reported, &left_out);
    prop_assert!(pack.dropped.iter().all(|dropped| dropped.reason == DropReason::Budget));

    // What is said is the texts that stay, in order, joined by their separators.
    let mut said: Vec<(Role, String)> = Vec::new();
    for candidate in &staying {
        match said.last_mut().filter(|(role, _)| *role == candidate.role) {
            Some((_, text)) => *text += &format!("{}{}", candidate.separator, candidate.content),
            None => said.push((candidate.role, candidate.content.clone())),
        }
    }
    let messages: Vec<(Role, String)> =
        pack.messages.iter().map(|message| (message.role, message.content())).collect();
    prop_assert_eq!(messages, said);
    let owners: Vec<usize> =
        pack.messages.iter().flat_map(|message| &message.parts).map(|part| part.entry).collect();
    prop_assert_eq!(owners, (0..staying.len()).collect::<Vec<_>>());

    let layers: BTreeSet<ContextLayer> =
        pack.dropped.iter().map(|dropped| dropped.entry.layer).collect();
    prop_assert_eq!(&pack.compression_metadata.truncated_layers, &Vec::from_iter(layers));
    prop_assert_eq!(pack.compression_metadata.entries_dropped, pack.dropped.len());
    Ok(gone.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn exactly_the_lowest_groups_that_must_go_go(candidates in any_candidates(), spare in 0..60_usize) {
        // Between nothing and all: the whole prompt's tokens less some.
        let limit = cost(&candidates).saturating_sub(spare);
        let encoder = CountedEncoder::default();
        let packed = pack(request(candidates.clone(), limit), &encoder);
        prop_assert!(encoder.renderings() <= 3 + 3, "{} renderings", encoder.renderings());
        match (packed, expected_drops(&candidates, limit)) {
            (Ok(pack), Some(expected)) => {
                prop_assert_eq!(check(&pack, &candidates, limit)?, expected);
                prop_assert_eq!(pack.budget_used, cost(&without(&candidates, expected)));
            }
            (Err(PackError::TooLarge { needed, limit: told, largest, largest_tokens }), None) => {
                let least = without(&candidates, GROUPS);
                prop_assert_eq!((needed, told), (cost(&least), limit));
                // The named part is in the smallest prompt, and none of it is larger.
                let tokens = WordEncoder::default().encode(
                    &pack(request(least.clone(), needed), &WordEncoder::default()).unwrap().messages,
                    least.len(),
                ).unwrap().entry_tokens;
                prop_assert_eq!(Some(&largest_tokens), tokens.iter().max().or(Some(&0)));
                if let Some(place) = least.iter().position(|candidate| candidate.source == largest) {
                    prop_assert_eq!(tokens[place], largest_tokens);
                } else {
                    prop_assert!(least.is_empty());
                }
            }
            (packed, expected) => prop_assert!(false, "{packed:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn a_pack_fits_also_where_fewer_words_can_be_more_tokens(
        candidates in any_candidates(),
        limit in 0..40_usize,
    ) {
        let whole = |candidates: &[Candidate]| {
            pack(request(candidates.to_vec(), usize::MAX), &PairEncoder).unwrap().budget_used
        };
        match pack(request(candidates.clone(), limit), &PairEncoder) {
            Ok(pack) => {
                check(&pack, &candidates, limit)?;
                if whole(&candidates) <= limit {
                    prop_assert!(pack.dropped.is_empty(), "what fits is kept whole");
                }
            }
            Err(error) => {
                prop_assert!(whole(&without(&candidates, GROUPS)) > limit, "{error}");
                prop_assert!(whole(&candidates) > limit, "{error}");
            }
        }
    }

    #[test]
    fn what_may_not_go_never_goes(candidates in any_candidates(), limit in 0..80_usize) {
        if let Ok(pack) = pack(request(candidates.clone(), limit), &WordEncoder::default()) {
            let fixed: Vec<&str> = candidates
                .iter()
                .filter(|candidate| candidate.drop_group.is_none())
                .map(|candidate| candidate.content.as_str())
                .collect();
            prop_assert_eq!(contents(pack.layer(ContextLayer::L0)), fixed);
            prop_assert!(pack.dropped.iter().all(|dropped| dropped.entry.layer != ContextLayer::L0));
        }
    }

    #[test]
    fn packing_again_what_was_kept_changes_nothing(candidates in any_candidates(), limit in 0..80_usize) {
        if let Ok(first) = pack(request(candidates.clone(), limit), &WordEncoder::default()) {
            let kept = kept(&first);
            let staying: Vec<Candidate> =
                candidates.into_iter().filter(|candidate| kept.contains(&candidate.source)).collect();
            let second = pack(request(staying, limit), &WordEncoder::default()).unwrap();
            prop_assert_eq!(second.layers, first.layers);
            prop_assert_eq!(second.messages, first.messages);
        }
    }
}
