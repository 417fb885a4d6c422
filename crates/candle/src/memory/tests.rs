//! What fits, by numbers.

use proptest::prelude::*;

use super::*;

const GB: u64 = 1_000_000_000;

/// A model of 4 GB with 131,072 tokens, 100 kB each: of eight billion weights or so.
fn plan() -> MemoryPlan {
    MemoryPlan::for_tests(4 * GB, 25, 500, 131_072)
}

fn machine(available: u64) -> Option<MachineMemory> {
    Some(MachineMemory { total: 16 * GB, available })
}

fn choose(limit: Option<usize>, available: u64) -> Result<ChosenContext, DoesNotFit> {
    choose_context(&plan(), limit, machine(available), Overcommit::Refuse)
}

#[test]
fn a_window_that_memory_limits_is_made_smaller_and_says_so() {
    let chosen = choose(None, 10 * GB).unwrap();
    assert_eq!((chosen.limited_by, chosen.room), (LimitedBy::Memory, Room::Ample));
    assert_eq!(chosen.tokens, 39_936, "four fifths of 10 GB less 4 GB, by 100 kB");
    let notice = chosen.notice().unwrap();
    assert!(notice.contains("39,936 tokens in place of 131,072"), "{notice}");
    assert!(notice.contains("10 GB"), "{notice}");
}

#[test]
fn the_persons_limit_wins_also_where_more_would_fit() {
    let chosen = choose(Some(8192), 15 * GB).unwrap();
    assert_eq!((chosen.tokens, chosen.limited_by), (8192, LimitedBy::Person));
    assert_eq!(chosen.notice(), None);
    let tight = choose(Some(8192), 5 * GB).unwrap();
    assert_eq!((tight.tokens, tight.room), (8192, Room::Tight));
    assert!(tight.notice().unwrap().contains("4.8 GB of the 5.0 GB"), "{:?}", tight.notice());
}

#[test]
fn a_limit_that_does_not_fit_is_made_smaller() {
    let chosen = choose(Some(100_000), 10 * GB).unwrap();
    assert_eq!((chosen.tokens, chosen.limited_by), (39_936, LimitedBy::Memory));
    assert!(chosen.notice().unwrap().contains("in place of 100,000"));
}

#[test]
fn the_last_fifth_is_used_before_a_model_is_refused() {
    let chosen = choose(None, 5 * GB).unwrap();
    assert_eq!((chosen.tokens, chosen.room), (9984, Room::Tight));
}

#[test]
fn what_does_not_fit_is_refused_with_the_numbers_and_what_would() {
    let refused = choose(None, 4 * GB + GB / 20).unwrap_err();
    let text = refused.to_string();
    for part in ["4.1 GB", "1,024 tokens", "of 16 GB", "256 tokens", "allow_overcommit"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert_eq!(refused.largest_context, Some(256));
    let refused = choose(None, 3 * GB).unwrap_err();
    assert_eq!(refused.largest_context, None);
    assert!(refused.to_string().contains("No context at all would fit"));
}

#[test]
fn a_person_can_have_it_all_the_same() {
    let all = |limit| choose_context(&plan(), limit, machine(3 * GB), Overcommit::Allow).unwrap();
    let chosen = all(None);
    assert_eq!((chosen.tokens, chosen.room), (LEAST_CONTEXT, Room::TooSmall));
    assert!(chosen.notice().unwrap().contains("because you allowed it"));
    assert_eq!(all(Some(16_384)).tokens, 16_384);
}

#[test]
fn a_machine_that_tells_nothing_limits_nothing() {
    let chosen = choose_context(&plan(), None, None, Overcommit::Refuse).unwrap();
    assert_eq!((chosen.tokens, chosen.limited_by), (131_072, LimitedBy::Model));
    assert_eq!(chosen.spare_bytes(7), 7);
}

#[test]
fn kept_caches_get_what_the_window_leaves() {
    let chosen = choose(Some(8192), 7 * GB).unwrap();
    assert_eq!(chosen.spare_bytes(usize::MAX), 780_800_000);
    assert_eq!(chosen.spare_bytes(1000), 1000);
    assert_eq!(choose(Some(8192), 5 * GB).unwrap().spare_bytes(1000), 0);
}

#[test]
fn bytes_read_as_people_say_them() {
    for (bytes, text) in [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (2_100, "2.1 kB"),
        (98_362_432, "98 MB"),
        (999_700_000, "1.0 GB"),
        (16_400_000_000, "16 GB"),
        (u64::MAX, "18446744 TB"),
    ] {
        assert_eq!(in_units(bytes), text);
    }
}

proptest! {
    #[test]
    fn the_largest_context_is_the_largest(bytes in 0..20 * GB, most in 1usize..200_000) {
        let plan = plan();
        let fits = |context: usize| plan.need(context).total() <= bytes;
        match plan.largest_context(bytes, most) {
            None => prop_assert!(!fits(256.min(most))),
            Some(found) => {
                prop_assert!(fits(found) && found <= most);
                prop_assert!(found == most || !fits((found + 256).min(most)));
            }
        }
    }

    #[test]
    fn whatever_is_chosen_fits_unless_the_person_allowed_more(
        available in 0..20 * GB,
        limit in proptest::option::of(1usize..200_000),
    ) {
        if let Ok(chosen) = choose(limit, available) {
            prop_assert!(chosen.need.total() <= available);
            prop_assert!(chosen.tokens <= limit.unwrap_or(usize::MAX).min(131_072));
            prop_assert!(chosen.tokens >= LEAST_CONTEXT.min(limit.unwrap_or(usize::MAX)));
        }
    }
}
