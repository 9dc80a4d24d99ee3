//! The processor's own counter of time, for profiles: read in some ten nanoseconds, where a clock takes forty.

/// Ticks since some moment of the past: what x86-64 calls time-stamp counter and AArch64 virtual counter, which run on at
/// one pace whatever the processor's speed; nanoseconds elsewhere. They are compared within one thread only.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: reads a counter that is open to every program, and touches no memory.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
    }
}
