//! Sampling settings as people write them.

use correx_inference::{FinishReason, GenerationConfig, ResponseFormat};
use serde_json::json;

#[test]
fn what_is_left_out_has_its_default() {
    let empty: GenerationConfig = serde_json::from_value(json!({})).unwrap();
    assert_eq!(empty, GenerationConfig::default());
    let some: GenerationConfig =
        serde_json::from_value(json!({"temperature": 0.2, "seed": 7, "max_tokens": 64})).unwrap();
    assert_eq!(
        some,
        GenerationConfig { temperature: 0.2, seed: 7, max_tokens: 64, ..Default::default() }
    );
}

#[test]
fn the_defaults_are_in_their_ranges_and_repeatable() {
    let config = GenerationConfig::default();
    assert!(config.temperature > 0.0 && config.top_p > 0.0 && config.top_p <= 1.0);
    assert!((0.0..1.0).contains(&config.min_p) && config.repetition_penalty >= 1.0);
    assert!(config.max_tokens > 0);
    assert_eq!((config.seed, config.format), (0, ResponseFormat::Text));
}

#[test]
fn a_setting_that_does_not_exist_is_refused_by_name() {
    let error = serde_json::from_value::<GenerationConfig>(json!({"temprature": 0.2})).unwrap_err();
    assert!(error.to_string().contains("temprature"), "{error}");
}

#[test]
fn a_setting_of_the_wrong_kind_is_refused() {
    for wrong in [
        json!({"seed": -1}),
        json!({"top_k": 0.5}),
        json!({"max_tokens": "many"}),
        json!({"temperature": null}),
        json!({"format": "poem"}),
    ] {
        assert!(serde_json::from_value::<GenerationConfig>(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn settings_survive_json() {
    let with = |format| GenerationConfig { format, ..GenerationConfig::default() };
    for config in [
        GenerationConfig::default(),
        GenerationConfig::greedy(3),
        with(ResponseFormat::JsonSchema(json!({"type": "object"}))),
        with(ResponseFormat::Choice(vec!["yes".into(), "no".into()])),
        with(ResponseFormat::Regex("[0-9]+".into())),
    ] {
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<GenerationConfig>(&text).unwrap(), config);
    }
}

#[test]
fn a_form_is_written_as_its_name_and_what_belongs_to_it() {
    for (format, written) in [
        (ResponseFormat::Text, json!("text")),
        (
            ResponseFormat::JsonSchema(json!({"type": "null"})),
            json!({"json_schema": {"type": "null"}}),
        ),
        (ResponseFormat::Choice(vec!["a".into()]), json!({"choice": ["a"]})),
        (ResponseFormat::Regex("a+".into()), json!({"regex": "a+"})),
    ] {
        assert_eq!(serde_json::to_value(&format).unwrap(), written);
        let read: GenerationConfig = serde_json::from_value(json!({"format": written})).unwrap();
        assert_eq!(read.format, format);
        assert_eq!(format.is_free(), format == ResponseFormat::Text);
    }
}

#[test]
fn greedy_is_the_likeliest_token_with_nothing_in_its_way() {
    let greedy = GenerationConfig::greedy(128);
    assert_eq!((greedy.temperature, greedy.top_p, greedy.min_p), (0.0, 1.0, 0.0));
    assert_eq!((greedy.top_k, greedy.repetition_penalty, greedy.max_tokens), (0, 1.0, 128));
}

#[test]
fn why_a_reply_ended_is_one_word() {
    for (reason, word) in [
        (FinishReason::Stop, "stop"),
        (FinishReason::Length, "length"),
        (FinishReason::Cancelled, "cancelled"),
    ] {
        assert_eq!(serde_json::to_value(reason).unwrap(), word);
    }
}
