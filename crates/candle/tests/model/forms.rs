//! Replies of the real default model that are held to a form.

mod real_model {
    #![allow(clippy::unwrap_used)]

    use correx_candle::{CandleProvider, LoadOptions, RawModel};
    use correx_inference::{
        FinishReason, FormatError, GenerationConfig, InferenceCancellationToken, InferenceError,
        InferenceProvider, InferenceResponse, ModelCapability, ResponseFormat, StreamEvent,
        StreamSink,
    };
    use serde_json::{Value, json};

    use crate::real_model::{model, prompt_of, request};

    const MAILS: [&str; 20] = [
        "Could you send me 12 red pens and 3 notebooks? Anna",
        "My parcel is broken! I want my money back at once.",
        "When do you open on Saturday?",
        "Please cancel order 4711, I do not need the lamp any more.",
        "I need 40 chairs and 8 tables for 14 March. Thanks, Jörg",
        "The invoice 2024-17 lists two printers, we got one.",
        "Thank you for the fast delivery :-)",
        "Is the \"Model X\" lamp available in blue?",
        "WHERE IS MY ORDER??? It has been three weeks.",
        "We would like a quote for 200 t-shirts, size M.",
        "Hi, the link in your mail does not work: https://example.com/a?b=c",
        "Bitte senden Sie mir 5 Flaschen Öl und 2 Gläser Honig.",
        "The soup was cold and the waiter was rude.",
        "Can I change my address to 5 High Street, Leeds?",
        "One ticket for the 9:30 train to Paris, please.",
        "I forgot my password and the reset mail never comes.",
        "Order: 1x keyboard; 1x mouse; 2x cable (2 m).",
        "你好，我想订三本书。",
        "Your app crashes when I press {\"save\"}.",
        "Nothing special, just wanted to say hello.",
    ];

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "subject": {"type": "string", "minLength": 3, "maxLength": 30},
                "kind": {"enum": ["question", "complaint", "order", "other"]},
                "urgency": {"type": "integer", "minimum": 1, "maximum": 5},
                "items": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 2,
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "minLength": 2, "maxLength": 12},
                            "count": {"type": "integer", "minimum": 1, "maximum": 99},
                        },
                        "required": ["name", "count"],
                    },
                },
            },
            "required": ["subject", "kind", "urgency", "items"],
        })
    }

    fn load() -> CandleProvider {
        let options = LoadOptions { context_limit: Some(512), ..LoadOptions::default() };
        CandleProvider::load(&model(), options, |_| {}).unwrap()
    }

    async fn ask(
        provider: &CandleProvider,
        question: &str,
        key: &str,
        generation: GenerationConfig,
    ) -> Result<InferenceResponse, InferenceError> {
        let asked = request(prompt_of(provider, question), key, generation);
        provider.infer(asked, InferenceCancellationToken::new(), StreamSink::none()).await
    }

    #[tokio::test]
    async fn twenty_texts_give_twenty_values_by_the_schema() {
        let provider = load();
        assert!(provider.capabilities().contains(&ModelCapability::Constrained));
        let schema = schema();
        let rule = jsonschema::validator_for(&schema).unwrap();
        for (seed, mail) in (0u64..).zip(MAILS) {
            let question =
                format!("Describe the mail in JSON: subject, kind, urgency, items.\nMail: {mail}");
            let format = ResponseFormat::JsonSchema(schema.clone());
            // Greedy, sampled cool, sampled hot with a penalty that would break any form.
            let generation = match seed % 3 {
                0 => GenerationConfig::greedy(150),
                1 => GenerationConfig { seed, max_tokens: 150, ..GenerationConfig::default() },
                _ => GenerationConfig {
                    seed,
                    max_tokens: 150,
                    temperature: 1.8,
                    top_p: 1.0,
                    top_k: 0,
                    min_p: 0.0,
                    repetition_penalty: 1.9,
                    ..GenerationConfig::default()
                },
            };
            let generation = GenerationConfig { format, ..generation };
            let answer = ask(&provider, &question, "mails", generation).await.unwrap();
            assert_eq!(answer.finish_reason, FinishReason::Stop, "{answer:?}");
            let value: Value = serde_json::from_str(&answer.text)
                .unwrap_or_else(|error| panic!("{error}: {}", answer.text));
            assert!(rule.is_valid(&value), "{}", answer.text);
            assert_eq!(value.to_string(), answer.text, "compact, in the order of the schema");
            assert!(seed == 0 || answer.reused_tokens > 10, "the beginning is shared");
        }
    }

    fn held(format: ResponseFormat, tokens: usize) -> GenerationConfig {
        GenerationConfig { format, ..GenerationConfig::greedy(tokens) }
    }

    #[tokio::test]
    async fn forms_end_cut_off_stop_and_repeat_as_free_text_does() {
        let provider = load();
        let choice = |texts: &[&str]| {
            ResponseFormat::Choice(texts.iter().map(|text| (*text).to_owned()).collect())
        };
        let question = "What is the capital of France? Answer with one word.";
        let capitals = choice(&["Berlin", "Paris", "Paris, Texas"]);
        let answer = ask(&provider, question, "choice", held(capitals, 20)).await.unwrap();
        assert!(answer.text.starts_with("Paris"), "{answer:?}");
        assert_eq!(answer.finish_reason, FinishReason::Stop);
        let date = ResponseFormat::Regex("(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]".into());
        let date = ask(&provider, "When did the war end?", "date", held(date, 20)).await.unwrap();
        assert_eq!((date.text.len(), date.finish_reason), (10, FinishReason::Stop));
        assert!(date.text.starts_with("19") || date.text.starts_with("20"), "{}", date.text);

        // From the kept cache, from nothing, and beside others: the same.
        let json = || held(ResponseFormat::JsonSchema(schema()), 40);
        let first = ask(&provider, MAILS[0], "one", json()).await.unwrap();
        let again = ask(&provider, MAILS[0], "one", json()).await.unwrap();
        assert!(again.reused_tokens > 10 && first.reused_tokens == 0);
        assert_eq!((&first.text, first.output_tokens), (&again.text, again.output_tokens));
        let free = GenerationConfig::greedy(40);
        let (beside, _) = tokio::join!(
            ask(&provider, MAILS[0], "two", json()),
            ask(&provider, MAILS[1], "three", free)
        );
        assert_eq!(beside.unwrap().text, first.text);

        // Cut off, it is what came so far.
        let cut = ask(&provider, MAILS[0], "cut", GenerationConfig { max_tokens: 6, ..json() });
        let cut = cut.await.unwrap();
        assert_eq!((cut.finish_reason, cut.output_tokens), (FinishReason::Length, 6));
        assert!(first.text.starts_with(&cut.text), "{} / {}", cut.text, first.text);
        stopped(&provider, json(), &first.text).await;
        refused(&provider).await;
    }

    async fn stopped(provider: &CandleProvider, generation: GenerationConfig, whole: &str) {
        let cancel = InferenceCancellationToken::new();
        let sink = {
            let cancel = cancel.clone();
            StreamSink::new(move |event| {
                if matches!(event, StreamEvent::Text { tokens, .. } if tokens >= 4) {
                    cancel.cancel();
                }
            })
        };
        let asked = request(prompt_of(provider, MAILS[0]), "stop", generation.clone());
        let answer = provider.infer(asked, cancel, sink).await.unwrap();
        assert_eq!(answer.finish_reason, FinishReason::Cancelled);
        assert!(whole.starts_with(&answer.text) && !answer.text.is_empty(), "{}", answer.text);
        // Stopped before it began.
        let cancel = InferenceCancellationToken::new();
        cancel.cancel();
        let asked = request(prompt_of(provider, MAILS[0]), "stop", generation);
        let answer = provider.infer(asked, cancel, StreamSink::none()).await.unwrap();
        assert_eq!((answer.finish_reason, &answer.text[..]), (FinishReason::Cancelled, ""));
    }

    async fn refused(provider: &CandleProvider) {
        for format in [
            ResponseFormat::Choice(Vec::new()),
            ResponseFormat::Regex("(".into()),
            ResponseFormat::JsonSchema(json!({"type": "nothing"})),
        ] {
            let error = ask(provider, "Hello", "refused", held(format, 5)).await.unwrap_err();
            let InferenceError::Format(error) = error else { panic!("{error:?}") };
            assert_ne!(error, FormatError::NotSupported);
        }
    }

    #[test]
    fn a_model_without_chat_is_held_to_a_form_too() {
        let model = RawModel::load(&model(), |_| {}).unwrap();
        let prompt = model.vocabulary().encode("The sky is").unwrap();
        let choice = ResponseFormat::Choice(vec![" blue".into(), " green".into()]);
        let ids = model.generate_ids(&prompt, &held(choice, 9), |_| {}).unwrap();
        let said: Vec<u8> =
            ids.iter().flat_map(|id| model.vocabulary().reply_bytes(*id)).copied().collect();
        assert_eq!(said, b" blue");
        assert!(
            model.generate_ids(&prompt, &held(ResponseFormat::Choice(vec![]), 9), |_| {}).is_err()
        );
    }
}
