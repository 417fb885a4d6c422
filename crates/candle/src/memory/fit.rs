//! What a model needs against what there is.

use thiserror::Error;

use super::{MachineMemory, MemoryNeed, MemoryPlan};

/// The smallest window that is still of use, in tokens.
pub const LEAST_CONTEXT: usize = 1024;

/// How a need stands to what is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It fits.
    Ample,
    /// It fits, and takes more than four fifths of what is available.
    Tight,
    /// It does not fit.
    TooSmall,
}

impl Room {
    /// For `need` bytes on a machine.
    pub fn of(need: u64, machine: MachineMemory) -> Self {
        if need <= comfortable(machine) {
            Room::Ample
        } else if need <= machine.available {
            Room::Tight
        } else {
            Room::TooSmall
        }
    }
}

/// What may be taken without getting in the way of other programs.
fn comfortable(machine: MachineMemory) -> u64 {
    machine.available / 5 * 4
}

/// What to do with a model that does not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overcommit {
    /// Refuse it.
    #[default]
    Refuse,
    /// Load it all the same: the person wants it.
    Allow,
}

/// A model with one context on one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFit {
    /// The context, in tokens.
    pub context: usize,
    /// What it needs.
    pub need: MemoryNeed,
    /// The machine.
    pub machine: MachineMemory,
    /// How the two stand to each other.
    pub room: Room,
    /// The largest context that fits at all; `None`: none.
    pub largest_context: Option<usize>,
}

impl MemoryFit {
    /// The fit for `context` tokens, which may be more than the model was made for.
    pub fn new(plan: &MemoryPlan, context: usize, machine: MachineMemory) -> Self {
        let need = plan.need(context);
        Self {
            context,
            need,
            machine,
            room: Room::of(need.total(), machine),
            largest_context: plan.largest_context(machine.available, plan.model_context),
        }
    }
}

/// What a window is limited by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedBy {
    /// What the model was made for.
    Model,
    /// What the person set.
    Person,
    /// What fits into memory.
    Memory,
}

/// The window that a model is loaded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChosenContext {
    /// In tokens.
    pub tokens: usize,
    /// What would have been used if there were memory for it.
    pub wanted: usize,
    /// Why it is not larger.
    pub limited_by: LimitedBy,
    /// What it needs.
    pub need: MemoryNeed,
    /// The machine, where it is known.
    pub machine: Option<MachineMemory>,
    /// How the two stand to each other.
    pub room: Room,
}

impl ChosenContext {
    /// Of `wanted` bytes, how many are left beside the need without getting in the way of other
    /// programs.
    pub fn spare_bytes(&self, wanted: usize) -> usize {
        let Some(machine) = self.machine else { return wanted };
        let spare = comfortable(machine).saturating_sub(self.need.total());
        usize::try_from(spare).unwrap_or(usize::MAX).min(wanted)
    }

    /// What a person should know about it.
    pub fn notice(&self) -> Option<String> {
        let machine = self.machine?;
        let available = in_units(machine.available);
        let need = in_units(self.need.total());
        match (self.room, self.limited_by) {
            (Room::TooSmall, _) => Some(format!(
                "The model needs {need} of memory for a context of {} tokens and this machine has \
                 {available} available; it was loaded all the same, because you allowed it.",
                counted(self.tokens)
            )),
            (_, LimitedBy::Memory) => Some(format!(
                "The context is {} tokens in place of {}: this machine has {available} of memory \
                 available, and a larger one would need more.",
                counted(self.tokens),
                counted(self.wanted)
            )),
            (Room::Tight, _) => Some(format!(
                "The model may take {need} of the {available} of memory that this machine has \
                 available. Set a smaller `context` under [model] in settings.toml if other \
                 programs need it."
            )),
            (Room::Ample, _) => None,
        }
    }
}

/// A model that does not fit. The text says what it needs, what there is, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "it needs {} of memory for a context of {} tokens; this machine has {} available of {}. {}. Close other programs, choose a smaller model, or allow it all the same with `allow_overcommit = true` under [model] in settings.toml",
    in_units(.need.total()),
    counted(*.context),
    in_units(.machine.available),
    in_units(.machine.total),
    smaller(*.largest_context)
)]
pub struct DoesNotFit {
    /// The least context that was tried.
    pub context: usize,
    /// What that needs.
    pub need: MemoryNeed,
    /// The machine.
    pub machine: MachineMemory,
    /// The largest context that would fit; `None`: none.
    pub largest_context: Option<usize>,
}

fn smaller(context: Option<usize>) -> String {
    match context {
        Some(tokens) => {
            let tokens = counted(tokens);
            format!("The largest context that would fit is {tokens} tokens, too few to work with")
        }
        None => "No context at all would fit".to_owned(),
    }
}

/// The window to load a model with: what the model was made for, the person's `limit`, and what
/// fits, whichever is least. Where nobody set a limit, a fifth of what is available is left to
/// other programs. Without a known machine nothing is looked at.
pub fn choose_context(
    plan: &MemoryPlan,
    limit: Option<usize>,
    machine: Option<MachineMemory>,
    overcommit: Overcommit,
) -> Result<ChosenContext, DoesNotFit> {
    let wanted = limit.unwrap_or(usize::MAX).min(plan.model_context);
    let limited_by = match limit {
        Some(limit) if limit < plan.model_context => LimitedBy::Person,
        _ => LimitedBy::Model,
    };
    let chosen = |tokens: usize, limited_by: LimitedBy| {
        let need = plan.need(tokens);
        let room = machine.map_or(Room::Ample, |machine| Room::of(need.total(), machine));
        ChosenContext { tokens, wanted, limited_by, need, machine, room }
    };
    let whole = chosen(wanted, limited_by);
    let Some(machine) = machine else { return Ok(whole) };
    let by_person = limited_by == LimitedBy::Person;
    match whole.room {
        Room::Ample => return Ok(whole),
        Room::Tight if by_person => return Ok(whole),
        Room::TooSmall if by_person && overcommit == Overcommit::Allow => return Ok(whole),
        Room::Tight | Room::TooSmall => {}
    }
    let least = LEAST_CONTEXT.min(wanted);
    for bytes in [comfortable(machine), machine.available] {
        if let Some(tokens) = plan.largest_context(bytes, wanted).filter(|most| *most >= least) {
            return Ok(chosen(
                tokens,
                if tokens < wanted { LimitedBy::Memory } else { limited_by },
            ));
        }
    }
    match overcommit {
        Overcommit::Allow => {
            Ok(chosen(least, if least < wanted { LimitedBy::Memory } else { limited_by }))
        }
        Overcommit::Refuse => Err(DoesNotFit {
            context: least,
            need: plan.need(least),
            machine,
            largest_context: plan.largest_context(machine.available, wanted),
        }),
    }
}

/// Bytes with a decimal unit: `7.3 GB`.
pub fn in_units(bytes: u64) -> String {
    let mut scaled = bytes as f64;
    for unit in ["bytes", "kB", "MB", "GB", "TB"] {
        if scaled < 999.5 || unit == "TB" {
            return match unit {
                "bytes" => format!("{bytes} bytes"),
                unit if scaled < 9.95 => format!("{scaled:.1} {unit}"),
                unit => format!("{scaled:.0} {unit}"),
            };
        }
        scaled /= 1000.0;
    }
    String::new()
}

/// `1204` → `1,204`.
fn counted(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
