//! The memory that this process holds, where the system tells.

/// Resident memory in bytes; `None` where the system does not tell.
pub fn resident_bytes() -> Option<u64> {
    status("VmRSS:")
}

/// The most resident memory since the start, or since [`forget_peak`], in bytes.
pub fn peak_bytes() -> Option<u64> {
    status("VmHWM:")
}

/// Lets the peak begin anew, where the system can.
pub fn forget_peak() {
    if cfg!(target_os = "linux") {
        // Without it the peak is the process's, which is only larger.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
    }
}

fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
