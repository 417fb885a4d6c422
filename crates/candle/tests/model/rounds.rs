//! Loading and freeing a model over and over.

// What the tests share is outside test functions, where clippy does not know it for a test.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};

use correx_candle::memory::resident_bytes;
use correx_candle::{CandleProvider, LoadOptions};
use correx_inference::{
    GenerationConfig, InferenceCancellationToken, InferenceProvider, StreamSink,
};

use super::real_model::{model, prompt_of, request};

/// Threads of this process, and bytes that it holds.
fn held() -> (usize, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
    (threads.trim().parse().unwrap(), resident_bytes().unwrap())
}

/// Loads, answers, frees; then what is held once every thread of it has ended.
fn round(threads_before: Option<usize>) -> (usize, u64) {
    let options = LoadOptions { context_limit: Some(512), ..LoadOptions::default() };
    let provider = CandleProvider::load(&model(), options, |_| {}).unwrap();
    let prompt = prompt_of(&provider, "What is the capital of France?");
    let answering = provider.infer(
        request(prompt, "a", GenerationConfig::greedy(4)),
        InferenceCancellationToken::new(),
        StreamSink::none(),
    );
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(answering).unwrap();
    drop((provider, runtime));
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let now = held();
        let ended = threads_before.is_none_or(|before| now.0 <= before);
        if ended || Instant::now() > patience {
            return now;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `settling` rounds come first: they find their place in memory. Then `rounds` rounds may leave
/// `most` bytes behind; without a model so little is held that a share of it would be noise.
fn check(settling: usize, rounds: usize, most: u64) {
    let (threads_before, _) = held();
    let mut first = 0;
    for _ in 0..settling {
        (_, first) = round(Some(threads_before));
    }
    let mut last = (0, 0);
    for number in 0..rounds {
        last = round(Some(threads_before));
        println!("round {number}: {} threads, {} MiB", last.0, last.1 >> 20);
    }
    assert_eq!(last.0, threads_before, "threads are left over");
    let allowed = first + most;
    assert!(last.1 < allowed, "{first} bytes became {} in {rounds} rounds", last.1);
}

mod real_model {
    #[test]
    fn a_few_rounds_of_loading_and_freeing_leave_neither_memory_nor_threads_behind() {
        // Less than a leaked vocabulary of every round would be, and far less than weights.
        super::check(3, 4, 12 << 20);
    }
}

mod long {
    mod real_model {
        #[test]
        fn fifty_rounds_of_loading_and_freeing_leave_neither_memory_nor_threads_behind() {
            // Three hundredths of what is held with the model.
            super::super::check(12, 50, 4 << 20);
        }
    }
}
