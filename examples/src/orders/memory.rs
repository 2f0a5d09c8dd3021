//! How much memory a process held at most.

/// The peak resident set of process `pid` so far, in MiB, from the `VmHWM` line of
/// `/proc/PID/status` (kept by the kernel, so that sampling now and then misses nothing but the
/// last moments). `None` where there is no such file: another system, or the process is gone.
pub(crate) fn peak_mib(pid: u32) -> Option<f64> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parse(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u32 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(f64::from(kib) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_the_kernels_line() {
        let status = "Name:\torders\nVmPeak:\t  999 kB\nVmHWM:\t   10240 kB\nVmRSS:\t 5 kB\n";
        assert_eq!(parse(status), Some(10.0));
        assert_eq!(parse("Name:\tzombie\nState:\tZ (zombie)\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_holds_some_memory() {
        assert!(peak_mib(std::process::id()).unwrap() > 0.5);
    }
}
