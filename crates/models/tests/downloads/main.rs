//! Downloads from a hub that misbehaves in every way that hubs, networks and disks do.

mod given;
mod pausing;
mod refusals;
mod sharing;
mod trouble;
mod whole;
