//! How much memory there is.

use std::path::{Path, PathBuf};

/// The memory that this process can have, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineMemory {
    /// In all.
    pub total: u64,
    /// What can still be had without pushing anything out. Memory that only caches files counts.
    pub available: u64,
}

impl MachineMemory {
    /// What the system says now, or the control group that limits this process (a container, a
    /// service), whichever is less; `None` where neither tells.
    pub fn now() -> Option<Self> {
        let machine = sysinfo::System::new().ok().and_then(|mut system| {
            system.refresh_memory();
            let (total, available) = (system.total_memory(), system.available_memory());
            (total > 0).then_some(Self { total, available })
        });
        let group = Group::of_this_process(Path::new("/proc"), Path::new("/sys/fs/cgroup"));
        match (machine, group) {
            (Some(machine), Some(group)) => Some(machine.least(group)),
            (machine, group) => machine.or(group),
        }
    }

    /// The same, once `bytes` that are held now are given back.
    pub fn with_given_back(self, bytes: u64) -> Self {
        Self { available: self.available.saturating_add(bytes).min(self.total), ..self }
    }

    fn least(self, other: Self) -> Self {
        Self { total: self.total.min(other.total), available: self.available.min(other.available) }
    }
}

/// Names of the files of a control group (Linux), by the version of the interface.
struct Group {
    limit: &'static str,
    usage: &'static str,
    /// Beginnings of the lines of `memory.stat` that count memory which only caches files.
    caches: [&'static str; 2],
}

const VERSION_2: Group = Group {
    limit: "memory.max",
    usage: "memory.current",
    caches: ["inactive_file ", "active_file "],
};

const VERSION_1: Group = Group {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    caches: ["total_inactive_file ", "total_active_file "],
};

impl Group {
    /// The tightest limit of the process's group and the groups around it; `None` without one.
    fn of_this_process(proc: &Path, groups: &Path) -> Option<MachineMemory> {
        let membership = std::fs::read_to_string(proc.join("self/cgroup")).ok()?;
        membership
            .lines()
            .filter_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                let (controllers, path) = (parts.next()?, parts.next()?);
                if controllers.is_empty() {
                    // Where both versions are in use, the second lies in a folder of its own.
                    let unified = groups.join("unified");
                    let root = if unified.is_dir() { unified } else { groups.to_owned() };
                    VERSION_2.tightest(&root, path)
                } else if controllers.split(',').any(|controller| controller == "memory") {
                    VERSION_1.tightest(&groups.join("memory"), path)
                } else {
                    None
                }
            })
            .reduce(MachineMemory::least)
    }

    fn tightest(&self, root: &Path, path: &str) -> Option<MachineMemory> {
        let inner = root.join(path.trim_start_matches('/'));
        let folders = inner.ancestors().take_while(|folder| folder.starts_with(root));
        folders.filter_map(|folder| self.read(folder.to_owned())).reduce(MachineMemory::least)
    }

    fn read(&self, folder: PathBuf) -> Option<MachineMemory> {
        let number = |file: &str| -> Option<u64> {
            std::fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
        };
        // No number: no limit. So is more than any machine has.
        let total = number(self.limit).filter(|limit| *limit < 1 << 60)?;
        let stat = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let caches: u64 = stat
            .lines()
            .filter_map(|line| self.caches.iter().find_map(|name| line.strip_prefix(name)))
            .filter_map(|bytes| bytes.trim().parse::<u64>().ok())
            .sum();
        let held = number(self.usage)?.saturating_sub(caches);
        Some(MachineMemory { total, available: total.saturating_sub(held) })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A `/proc` and a `/sys/fs/cgroup` with these files.
    fn system(membership: &str, files: &[(&str, &str)]) -> Option<MachineMemory> {
        let dir = tempfile::tempdir().unwrap();
        let (proc, groups) = (dir.path().join("proc"), dir.path().join("groups"));
        fs::create_dir_all(proc.join("self")).unwrap();
        fs::write(proc.join("self/cgroup"), membership).unwrap();
        for (path, text) in files {
            let path = groups.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Group::of_this_process(&proc, &groups)
    }

    #[test]
    fn the_tightest_group_counts_and_file_caches_are_free_to_have() {
        let found = system(
            "0::/user/app\n",
            &[
                ("user/app/memory.max", "max\n"),
                ("user/app/memory.current", "300\n"),
                ("user/memory.max", "1000\n"),
                ("user/memory.current", "700\n"),
                ("user/memory.stat", "anon 400\ninactive_file 200\nactive_file 100\nslab 7\n"),
                ("memory.max", "5000\n"),
                ("memory.current", "800\n"),
            ],
        );
        assert_eq!(found, Some(MachineMemory { total: 1000, available: 600 }));
    }

    #[test]
    fn the_older_interface_is_read_too() {
        let found = system(
            "9:name=systemd:/\n4:cpu,memory:/box\n0::/\n",
            &[
                ("memory/box/memory.limit_in_bytes", "2000\n"),
                ("memory/box/memory.usage_in_bytes", "500\n"),
                ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory/memory.usage_in_bytes", "900\n"),
            ],
        );
        assert_eq!(found, Some(MachineMemory { total: 2000, available: 1500 }));
    }

    #[test]
    fn without_a_limit_the_machine_is_the_limit() {
        assert_eq!(system("0::/\n", &[("cgroup.procs", "1")]), None);
        assert_eq!(system("", &[]), None);
        let now = MachineMemory::now();
        assert!(now.is_none_or(|now| now.available <= now.total && now.total > 0));
    }

    #[test]
    fn what_is_given_back_is_available_again_and_never_more_than_all() {
        let machine = MachineMemory { total: 10, available: 4 };
        assert_eq!(machine.with_given_back(3).available, 7);
        assert_eq!(machine.with_given_back(u64::MAX).available, 10);
    }
}
