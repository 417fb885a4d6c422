use proptest::prelude::*;

use super::*;

/// Numbers from -1 to 1 that look random and are always the same.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    })
    .take(count)
    .collect()
}

/// The definition, in double precision.
fn exact(heads: Heads, view: View, queries: &[f32], keys: &[f32], values: &[f32]) -> Vec<f64> {
    let (before, scale) = (view.before, f64::from(view.scale));
    let capped = |score: f64| match view.cap.map(f64::from) {
        Some(cap) => cap * (score / cap).tanh(),
        None => score,
    };
    let at = |rows: &[f32], token: usize, head: usize, element: usize| {
        f64::from(rows[token * heads.kv_width() + head * heads.width + element])
    };
    let mut output = Vec::new();
    for (number, query) in queries.chunks_exact(heads.width).enumerate() {
        let per_row = heads.kv * heads.group;
        let (row, head) = (number / per_row, number % per_row / heads.group);
        let first = view.window.map_or(0, |window| (before + row + 1).saturating_sub(window));
        let scores: Vec<f64> = (first..=before + row)
            .map(|token| {
                let products = query.iter().enumerate();
                let product: f64 = products
                    .map(|(element, query)| f64::from(*query) * at(keys, token, head, element))
                    .sum();
                capped(product * scale).exp()
            })
            .collect();
        let all: f64 = scores.iter().sum();
        output.extend((0..heads.width).map(|element| {
            let shares = scores.iter().enumerate();
            let value = |token: usize| at(values, first + token, head, element);
            shares.map(|(token, score)| score / all * value(token)).sum::<f64>()
        }));
    }
    output
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn it_agrees_with_the_definition_and_depends_on_nothing_else(
        seed: u64,
        width in prop::sample::select(&[2usize, 12, 16, 40, 64][..]),
        kv in 1usize..4,
        group in 1usize..4,
        // Also where what is remembered goes on in another part.
        before in prop_oneof![0usize..60, 200usize..300],
        rows in 1usize..40,
        cut in 0usize..40,
        window in prop::option::of(1usize..90),
        scale in 0.1f32..4.0,
        cap in prop::option::of(0.5f32..50.0),
    ) {
        let heads = Heads { width, kv, group };
        let queries = numbers(seed, rows * heads.query_width());
        let keys = numbers(seed ^ 1, (before + rows) * heads.kv_width());
        let values = numbers(seed ^ 2, (before + rows) * heads.kv_width());
        let mut remembered = Remembered::new(heads.kv_width());
        // What lies behind the last token is not looked at.
        remembered.reserve(360).unwrap();
        let nothing = vec![f32::NAN; 360 * heads.kv_width()];
        remembered.write(0, &nothing, &nothing).unwrap();
        remembered.write(0, &keys, &values).unwrap();
        let view = View { before, window, scale, cap };
        let compute = |queries: &[f32], before: usize, threads: &Threads| {
            let mut output = vec![f32::NAN; queries.len()];
            let view = View { before, ..view };
            attend(heads, view, queries, &remembered, &mut output, threads).unwrap();
            output
        };
        let one = compute(&queries, before, &Threads::single());
        for (found, exact) in one.iter().zip(exact(heads, view, &queries, &keys, &values)) {
            prop_assert!((f64::from(*found) - exact).abs() < 1e-5, "{found} for {exact}");
        }
        let mut portable = vec![f32::NAN; queries.len()];
        let (plain, single) = (Instructions::Portable, Threads::single());
        attend_with(plain, heads, view, &queries, &remembered, &mut portable, &single).unwrap();
        for (found, portable) in one.iter().zip(portable) {
            prop_assert!((found - portable).abs() < 1e-5, "{found} for {portable}");
        }
        prop_assert_eq!(&compute(&queries, before, &Threads::new(2).unwrap()), &one);
        let cut = cut.min(rows);
        let (front, back) = queries.split_at(cut * heads.query_width());
        let mut parts = compute(front, before, &Threads::single());
        parts.extend(compute(back, before + cut, &Threads::single()));
        prop_assert_eq!(&parts, &one);
    }
}

#[test]
fn lengths_that_do_not_fit_are_errors() {
    let heads = Heads { width: 4, kv: 2, group: 3 };
    let found = |before: usize, queries: usize, tokens: usize, room: usize| {
        let mut remembered = Remembered::new(8);
        remembered.reserve(tokens).unwrap();
        let mut output = vec![0.0; room];
        let queries = vec![0.0; queries];
        let view = View { before, window: None, scale: 1.0, cap: None };
        attend(heads, view, &queries, &remembered, &mut output, &Threads::single())
    };
    assert_eq!(found(14, 48, 16, 48), Ok(()));
    assert!(found(15, 48, 16, 48).is_err() && found(1, 47, 16, 47).is_err());
    assert!(found(1, 48, 16, 47).is_err());
    let empty = Heads { width: 0, kv: 2, group: 3 };
    let nothing = Remembered::new(0);
    let view = View { before: 0, window: None, scale: 1.0, cap: None };
    assert!(attend(empty, view, &[], &nothing, &mut [], &Threads::single()).is_err());
}
