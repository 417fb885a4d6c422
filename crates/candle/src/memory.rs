//! The memory that this process holds, where the system tells.

/// Resident memory in MiB.
pub(crate) fn resident_mib() -> Option<f64> {
    status("VmRSS:")
}

/// The most resident memory since the start, or since [`forget_peak`], in MiB.
pub(crate) fn peak_mib() -> Option<f64> {
    status("VmHWM:")
}

/// Lets the peak begin anew, where the system can.
pub(crate) fn forget_peak() {
    if cfg!(target_os = "linux") {
        // Without it the peak is the process's, which is only larger.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
    }
}

fn status(field: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
