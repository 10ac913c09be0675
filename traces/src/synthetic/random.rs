//! Random times, the same ones for the same seed.

/// Random times: xorshift, enough for durations.
#[derive(Debug)]
pub(super) struct Random {
    state: u64,
    /// What times are multiples of, in nanoseconds.
    tick_ns: u64,
    /// Whether all times are the least that they can be.
    is_steady: bool,
}

impl Random {
    pub(super) fn new(seed: u64, tick_ns: u64) -> Self {
        // From zero, only zeros would follow.
        Self { state: seed | 1, tick_ns, is_steady: false }
    }

    /// The same for a program whose pace is known: nothing on the host is random.
    pub(super) fn steady(self) -> Self {
        Self { is_steady: true, ..self }
    }

    /// A number below a bound, which is not zero.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % bound
    }

    /// A time of at least so much, and less than that and the spread.
    pub(super) fn ns(&mut self, least: u64, spread: u64) -> u64 {
        let time = if self.is_steady { least } else { least + self.below(spread) };
        self.whole(time)
    }

    /// A time that the file can have, down from another one.
    pub(super) fn whole(&self, ns: u64) -> u64 {
        ns / self.tick_ns * self.tick_ns
    }
}
