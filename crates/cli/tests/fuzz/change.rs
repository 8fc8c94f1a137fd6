//! Seeded changes of inputs: the same ones on every machine.

use super::targets::PLANTED;

/// Pieces that parsers stumble over.
const PIECES: [&[u8]; 24] = [
    PLANTED.as_bytes(),
    b"\"qzprivatewordzq\"",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\n",
    b"\r",
    b"\0",
    b"---\n",
    b"- ",
    b"null",
    b"-1",
    b"1e400",
    b"9223372036854775808",
    b"\\ud800",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b"'''",
];
/// Changes of one input, at most.
const DEPTH_MAX: usize = 4;
/// Longest input, bytes.
const BYTES_MAX: usize = 64 * 1024;

/// A sequence of changed inputs.
pub(crate) struct Changes(u64);

impl Changes {
    /// The sequence of a seed.
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next input: one of these, changed in a few places.
    pub(crate) fn next(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(DEPTH_MAX) {
            self.change(&mut input, seeds);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let (start, end) = self.range(input.len());
        match self.below(6) {
            0 => drop(input.drain(start..end)),
            1 => input.extend_from_within(start..end),
            2 => {
                let piece = PIECES[self.below(PIECES.len())];
                input.splice(start..start, piece.iter().copied());
            }
            3 => {
                let piece = PIECES[self.below(PIECES.len())];
                input.splice(start..end, piece.iter().copied());
            }
            4 => {
                let other = &seeds[self.below(seeds.len())];
                let (from, to) = self.range(other.len());
                input.splice(start..end, other[from..to].iter().copied());
            }
            _ => {
                let bit = self.below(8);
                if let Some(byte) = input.get_mut(start) {
                    *byte ^= 1 << bit;
                }
            }
        }
    }

    /// A range of a length; short ones are as likely as long ones.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let start = self.below(length + 1);
        let most = if self.below(2) == 0 { 8 } else { length };
        (start, (start + self.below(most + 1)).min(length))
    }

    /// A number below a bound, by the generator SplitMix64.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bound = u64::try_from(bound).expect("a length fits");
        usize::try_from((mixed ^ (mixed >> 31)) % bound).expect("it is below a length")
    }
}
