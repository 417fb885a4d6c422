//! What packing keeps and drops, case by case.

use correx_context::testing::WordEncoder;
use correx_context::{
    Candidate, ContextLayer, ContextPackId, DropReason, EncodeError, EncodedPrompt, PackError,
    Role, SourceType, pack,
};

use crate::encoders::{CountedEncoder, PairEncoder, Refuses, RefusingEncoder};
use crate::given::{
    contents, cost, dropped, exchange, fixed, message, pack_words, request, summary, system,
};

/// Three exchanges of two words each between a system text and a message.
fn conversation() -> Vec<Candidate> {
    let mut candidates = vec![system("sys")];
    for (group, [asked, answered]) in
        [["q1", "r1"], ["q2", "r2"], ["q3", "r3"]].into_iter().enumerate()
    {
        candidates.extend(exchange(group, asked, answered));
    }
    candidates.push(message("now"));
    candidates
}

#[test]
fn what_fits_exactly_is_kept_whole() {
    let candidates = conversation();
    let limit = cost(&candidates);
    let pack = pack_words(candidates, limit).unwrap();
    assert_eq!(pack.budget_used, limit);
    assert_eq!(pack.budget_limit, limit);
    assert_eq!(dropped(&pack), [""; 0]);
    assert_eq!(contents(pack.layer(ContextLayer::L1)), ["q1", "r1", "q2", "r2", "q3", "r3"]);
    assert_eq!(contents(pack.layer(ContextLayer::L0)), ["sys", "now"]);
    assert!(pack.compression_metadata.truncated_layers.is_empty());
    assert_eq!(pack.compression_metadata.entries_dropped, 0);
}

#[test]
fn a_conversation_one_token_too_long_loses_its_oldest_exchange_and_one_more() {
    let candidates = conversation();
    let limit = cost(&candidates) - 1;
    let pack = pack_words(candidates, limit).unwrap();
    assert_eq!(contents(pack.layer(ContextLayer::L1)), ["q3", "r3"]);
    assert_eq!(dropped(&pack), ["q1", "r1", "q2", "r2"]);
    assert!(pack.dropped.iter().all(|dropped| dropped.reason == DropReason::Budget));
    assert_eq!(pack.compression_metadata.truncated_layers, [ContextLayer::L1]);
    assert_eq!(pack.compression_metadata.entries_dropped, 4);
    assert_eq!(contents(pack.layer(ContextLayer::L0)), ["sys", "now"]);
}

#[test]
fn the_last_exchange_goes_when_only_it_is_left_to_go() {
    let candidates = conversation();
    let least = [candidates[0].clone(), candidates[7].clone()];
    let pack = pack_words(candidates.clone(), cost(&least)).unwrap();
    assert_eq!(pack.layer(ContextLayer::L1), []);
    assert_eq!(pack.budget_used, cost(&least));
    assert_eq!(dropped(&pack).len(), 6);
}

#[test]
fn the_exchange_beyond_need_stays_where_its_going_would_not_fit() {
    let turn =
        |group, content: &str| Candidate { layer: ContextLayer::L1, ..summary(group, content) };
    // As pairs: 7 tokens; without the first turn 3, without two 5, without all 2.
    let candidates = vec![turn(0, "x"), turn(1, "b"), turn(2, "b"), system("c c d d")];
    let pack = pack(request(candidates, 3), &PairEncoder).unwrap();
    assert_eq!(dropped(&pack), ["x"]);
    assert_eq!(pack.budget_used, 3);
}

#[test]
fn summaries_go_before_conversation_and_only_as_many_as_needed() {
    let mut candidates = vec![system("sys"), summary(0, "s1"), summary(1, "s2"), summary(2, "s3")];
    candidates.extend(exchange(3, "q1", "r1"));
    candidates.extend(exchange(4, "q2", "r2"));
    candidates.push(message("now"));
    let full = cost(&candidates);

    let one = pack_words(candidates.clone(), full - 1).unwrap();
    assert_eq!(dropped(&one), ["s1"], "a summary takes no other with it");
    let two = pack_words(candidates.clone(), full - 2).unwrap();
    assert_eq!(dropped(&two), ["s1", "s2"]);
    let all = pack_words(candidates.clone(), full - 3).unwrap();
    assert_eq!(dropped(&all), ["s1", "s2", "s3"], "the last summary takes no exchange with it");
    assert_eq!(all.compression_metadata.truncated_layers, [ContextLayer::L2]);
    let talk = pack_words(candidates, full - 4).unwrap();
    assert_eq!(dropped(&talk), ["s1", "s2", "s3", "q1", "r1", "q2", "r2"]);
    assert_eq!(
        talk.compression_metadata.truncated_layers,
        [ContextLayer::L1, ContextLayer::L2],
        "sorted, each once"
    );
}

#[test]
fn an_exchange_takes_nothing_of_another_layer_with_it() {
    let mut candidates = vec![system("sys")];
    candidates.extend(exchange(0, "q1", "r1"));
    candidates.push(summary(1, "s1"));
    let limit = cost(&candidates) - 1;
    assert_eq!(dropped(&pack_words(candidates, limit).unwrap()), ["q1", "r1"]);
}

#[test]
fn the_lowest_group_goes_first_wherever_it_stands_and_order_is_kept() {
    let candidates = vec![summary(9, "nine"), summary(2, "two"), system("sys"), summary(5, "five")];
    let limit = cost(&candidates) - 1;
    let pack = pack_words(candidates.clone(), limit).unwrap();
    assert_eq!(dropped(&pack), ["two"]);
    assert_eq!(contents(pack.layer(ContextLayer::L2)), ["nine", "five"]);
    assert_eq!(pack.messages.len(), 1);
    assert_eq!(pack.messages[0].content(), "nine\n\nsys\n\nfive");

    let pack = pack_words(candidates, limit - 1).unwrap();
    assert_eq!(dropped(&pack), ["two", "five"]);
}

#[test]
fn a_group_goes_whole_however_far_apart_its_members_stand() {
    let candidates = vec![summary(1, "first half"), system("sys"), summary(1, "second half")];
    let limit = cost(&candidates) - 1;
    assert_eq!(dropped(&pack_words(candidates, limit).unwrap()), ["first half", "second half"]);
}

#[test]
fn neighbours_of_one_role_share_a_message_and_its_separators_belong_to_what_follows() {
    let with = |separator, candidate: Candidate| Candidate { separator, ..candidate };
    let candidates = vec![
        with("unused before ", system("one")),
        with(" and then ", system("two words")),
        with("unused between ", message("three")),
        with(" + ", fixed(SourceType::WorkflowStatus, Role::User, "four")),
    ];
    let limit = cost(&candidates);
    let encoder = WordEncoder::default();
    let pack = pack(request(candidates, limit), &encoder).unwrap();
    let spoken: Vec<(Role, String)> =
        pack.messages.iter().map(|message| (message.role, message.content())).collect();
    assert_eq!(
        spoken,
        [(Role::System, "one and then two words".into()), (Role::User, "three + four".into())]
    );
    let owners: Vec<usize> =
        pack.messages.iter().flat_map(|message| &message.parts).map(|part| part.entry).collect();
    assert_eq!(owners, [0, 1, 2, 3]);
    assert_eq!(pack.prompt.entry_tokens, [1, 4, 1, 2]);
    assert_eq!(pack.layer_tokens(ContextLayer::L0), 8);
    assert_eq!(encoder.decode(&pack.prompt.ids), "one and then two words three + four");
    assert_eq!(contents(pack.entries()), ["one", "two words", "three", "four"]);
}

#[test]
fn an_entry_keeps_its_raw_text_role_source_and_tokens() {
    let candidates = vec![system("sys"), summary(3, "did a b c"), message("now what")];
    let pack = pack_words(candidates, 100).unwrap();
    let entry = &pack.layer(ContextLayer::L2)[0];
    assert_eq!(entry.id.0, "entry-1");
    assert_eq!(entry.source, SourceType::StageSummary("stage-3".into()));
    assert_eq!((entry.role, entry.content.as_str(), entry.tokens), (Role::System, "did a b c", 4));
    assert_eq!(entry.layer, ContextLayer::L2);
    let ids: Vec<&str> =
        pack.layer(ContextLayer::L0).iter().map(|entry| entry.id.0.as_str()).collect();
    assert_eq!(ids, ["entry-0", "entry-2"]);
    let tokens: usize = pack.entries().map(|entry| entry.tokens).sum();
    assert_eq!(tokens + pack.prompt.template_tokens, pack.budget_used);
}

#[test]
fn a_pack_says_whose_it_is_and_what_governs_it() {
    let pack = pack_words(vec![system("sys")], 10).unwrap();
    assert_eq!(pack.id, ContextPackId("pack".into()));
    assert_eq!(pack.session_id, Some("s".into()));
    assert_eq!(pack.stage_id, Some("a".into()));
    assert_eq!(
        pack.compression_metadata.applied_strategies,
        [correx_context::CompressionStrategy::L0Immutable]
    );
}

#[test]
fn what_was_left_out_before_is_reported_first_with_its_own_reason() {
    let mut candidates = vec![system("sys")];
    candidates.extend(exchange(1, "q2", "r2"));
    let mut request = request(candidates.clone(), cost(&candidates) - 1);
    let [asked, answered] = exchange(0, "long ago indeed", "quite so");
    request.already_dropped =
        vec![(asked, DropReason::KeepLast(6)), (answered, DropReason::KeepLast(6))];
    let pack = pack(request, &WordEncoder::default()).unwrap();
    let reported: Vec<(&str, &str, usize, DropReason)> = pack
        .dropped
        .iter()
        .map(|dropped| {
            let entry = &dropped.entry;
            (entry.id.0.as_str(), entry.content.as_str(), entry.tokens, dropped.reason)
        })
        .collect();
    assert_eq!(
        reported,
        [
            ("dropped-0", "long ago indeed", 3, DropReason::KeepLast(6)),
            ("dropped-1", "quite so", 2, DropReason::KeepLast(6)),
            ("dropped-2", "q2", 1, DropReason::Budget),
            ("dropped-3", "r2", 1, DropReason::Budget),
        ]
    );
    assert_eq!(pack.compression_metadata.entries_dropped, 4);
    assert_eq!(pack.compression_metadata.truncated_layers, [ContextLayer::L1]);
}

#[test]
fn what_was_left_out_before_truncates_its_layer_also_where_the_rest_fits() {
    let mut request = request(vec![system("sys")], 10);
    request.already_dropped = vec![(summary(0, "old"), DropReason::KeepLast(2))];
    let pack = pack(request, &WordEncoder::default()).unwrap();
    assert_eq!(pack.compression_metadata.truncated_layers, [ContextLayer::L2]);
    assert_eq!(contents(pack.entries()), ["sys"]);
}

#[test]
fn what_cannot_fit_is_refused_with_the_largest_part_by_name() {
    let mut candidates =
        vec![system("sys"), summary(0, "a summary much longer than all the others")];
    candidates.extend(exchange(1, "q1", "r1"));
    candidates.push(message("a b c d"));
    let least = cost(&[candidates[0].clone(), candidates[4].clone()]);
    assert!(pack_words(candidates.clone(), least).is_ok());
    let error = pack_words(candidates.clone(), least - 1).unwrap_err();
    assert_eq!(
        error,
        PackError::TooLarge {
            needed: least,
            limit: least - 1,
            largest: SourceType::Message,
            largest_tokens: 4
        }
    );
    for told in [least.to_string(), (least - 1).to_string(), "message".into(), "4".into()] {
        assert!(error.to_string().contains(&told), "{error} does not say {told}");
    }
    candidates[0].content = "a very long system text".into();
    let error = pack_words(candidates, 0).unwrap_err();
    assert!(matches!(
        error,
        PackError::TooLarge { limit: 0, largest: SourceType::SystemPrompt, largest_tokens: 5, .. }
    ));
}

#[test]
fn nothing_at_all_is_a_pack_of_the_templates_own_tokens() {
    let pack = pack_words(Vec::new(), WordEncoder::REPLY_MARK).unwrap();
    assert_eq!((pack.budget_used, pack.entries().count()), (WordEncoder::REPLY_MARK, 0));
    assert!(matches!(
        pack_words(Vec::new(), WordEncoder::REPLY_MARK - 1),
        Err(PackError::TooLarge { largest_tokens: 0, .. })
    ));
}

#[test]
fn an_encoder_that_fails_is_reported_in_its_own_words() {
    let refused = |candidates: Vec<Candidate>, limit, refuses| {
        pack(request(candidates, limit), &RefusingEncoder(refuses)).unwrap_err()
    };
    let error = refused(vec![message("refused")], 100, Refuses::Prompts);
    assert_eq!(error, PackError::Encode(EncodeError::Template("no".into())));

    let candidates = vec![system("sys"), summary(0, "refused")];
    let limit = cost(&candidates) - 1;
    let error = refused(candidates, limit, Refuses::Texts);
    assert_eq!(error, PackError::Encode(EncodeError::Tokenizer("refused".into())));
}

#[test]
fn a_thousand_groups_need_few_renderings() {
    let mut candidates = vec![system("sys")];
    candidates.extend((0..1_000).flat_map(|group| exchange(group, "question", "answer")));
    for limit in [0, 6, 500, 4_000, 7_999, 8_001, 8_006, 20_000] {
        let encoder = CountedEncoder::default();
        let packed = pack(request(candidates.clone(), limit), &encoder);
        assert!(encoder.renderings() <= 10 + 3, "{} at {limit}", encoder.renderings());
        assert_eq!(packed.is_err(), limit < 6, "at {limit}");
    }
}

#[test]
fn the_prompt_that_is_counted_is_the_prompt_that_is_fed() {
    let candidates = conversation();
    let limit = cost(&candidates) - 1;
    let encoder = WordEncoder::default();
    let pack = pack(request(candidates, limit), &encoder).unwrap();
    assert_eq!(encoder.decode(&pack.prompt.ids), "sys q3 r3 now");
    let EncodedPrompt { ids, entry_tokens, template_tokens, .. } = &pack.prompt;
    assert_eq!(ids.len(), entry_tokens.iter().sum::<usize>() + template_tokens);
    assert_eq!(pack.budget_used, ids.len());
}
