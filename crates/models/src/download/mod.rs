//! Downloads from the hub.
//!
//! # Layout
//! - [`downloads`]: [`Downloads`], the handle: start, pause, resume, cancel, watch.
//! - [`state`]: [`Download`], how one stands; what is told of it and when.
//! - [`transfer`]: one model, from the first question to the finished file.
//! - [`part`]: a file that is not whole yet, and how far it can be trusted; [`leftover`]: those that
//!   lie about.
//! - [`http`]: the requests; [`answer`]: what an answer means.
//! - [`pace`]: patience, pauses, speed; [`disk`]: space.
//! - [`error`]: why a download stopped.
//!
//! Nothing here opens a connection before [`Downloads::start`] or [`Downloads::resume`] is called.

mod answer;
mod disk;
mod downloads;
mod error;
mod http;
mod leftover;
mod pace;
mod part;
mod state;
mod transfer;

pub use disk::{Disk, RealDisk};
pub use downloads::{DownloadParts, Downloads, KeepPart};
pub use error::{DownloadError, megabytes};
pub use leftover::{Leftover, leftovers};
pub use pace::Patience;
pub use state::{Download, DownloadId, Phase};
pub use transfer::Check;
