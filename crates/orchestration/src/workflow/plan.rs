//! The order in which stages are planned.

use super::Stage;

/// The stages in the order of the file, but each behind all that it needs. A circle, which no
/// parsed workflow has, is left in the order of the file.
pub(super) fn order(stages: &[Stage]) -> Vec<&Stage> {
    let mut left: Vec<&Stage> = stages.iter().collect();
    let mut ordered: Vec<&Stage> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let ready = left
            .iter()
            .position(|stage| !left.iter().any(|other| stage.needs.contains(&other.id)))
            .unwrap_or(0);
        ordered.push(left.remove(ready));
    }
    ordered
}
