//! What operators were called with, each distinct one once.
//!
//! A trace has millions of operators and some thousand shapes. The text of an operator's arguments
//! is looked up as it stands; only what was not seen before is read, into the short form that
//! [`Shape`](crate::Shape) explains. Both parsers give the same form, however the file is laid out.

use rustc_hash::FxHashMap;

use super::event::Inputs;
use crate::Names;

/// Most distinct shapes of a trace, and the bytes that they may take together: a hundred times what
/// real traces have.
const MOST_SHAPES: usize = 1 << 16;
const MOST_BYTES: usize = 16 << 20;

/// The memory for texts that were seen, in bytes: when it is full, they are forgotten and read anew.
const MOST_SEEN: usize = 4 << 20;

/// Inputs behind these are left out: lists of parameters in optimizers are long.
const MOST_INPUTS: usize = 24;

/// The same for the tensors of a list.
const MOST_TENSORS: usize = 8;

/// Longer values are left out: of interest are numbers and short lists of them.
const LONGEST_VALUE: usize = 40;

/// Gives each distinct shape a number.
#[derive(Debug, Default)]
pub(super) struct Interner {
    seen: FxHashMap<Box<[u8]>, u32>,
    seen_bytes: usize,
    /// The bytes of all shapes.
    bytes: usize,
    key: Vec<u8>,
}

impl Interner {
    /// The number of what an operator was called with; 0 if the event says nothing of tensors.
    /// `None` if there are too many shapes.
    pub(super) fn id(&mut self, inputs: &Inputs<'_>, shapes: &mut Names) -> Option<u32> {
        if shapes.is_empty() {
            shapes.intern(b"");
        }
        if inputs.dims.is_empty() {
            return Some(0);
        }
        self.key.clear();
        for part in [&inputs.dims, &inputs.types, &inputs.values] {
            self.key.extend_from_slice(part);
            // No JSON has it outside of a string, and none inside.
            self.key.push(0);
        }
        if let Some(&id) = self.seen.get(self.key.as_slice()) {
            return Some(id);
        }
        let id = self.add(&short_form(inputs), shapes)?;
        self.seen_bytes += self.key.len();
        if self.seen_bytes > MOST_SEEN {
            self.seen.clear();
            self.seen_bytes = self.key.len();
        }
        self.seen.insert(self.key.as_slice().into(), id);
        Some(id)
    }

    /// Adds the shapes of another part: the new number of each.
    pub(super) fn absorb(&mut self, other: &Names, shapes: &mut Names) -> Vec<Option<u32>> {
        other.iter().map(|(_, text)| self.add(text, shapes)).collect()
    }

    /// The number of a text, which is added if it is new; 0 is the empty one.
    pub(super) fn add(&mut self, text: &str, shapes: &mut Names) -> Option<u32> {
        if shapes.is_empty() {
            shapes.intern(b"");
        }
        if let Some(id) = shapes.find(text.as_bytes()) {
            return Some(id.0);
        }
        if shapes.len() >= MOST_SHAPES || self.bytes + text.len() > MOST_BYTES {
            return None;
        }
        self.bytes += text.len();
        Some(shapes.intern(text.as_bytes()).0)
    }
}

/// The short form; empty if there is no tensor.
fn short_form(inputs: &Inputs<'_>) -> String {
    let Some(dims) = elements(&inputs.dims) else { return String::new() };
    let types = elements(&inputs.types).unwrap_or_default();
    let values = elements(&inputs.values).unwrap_or_default();
    if !dims.iter().any(|dims| sizes(dims).is_some_and(|sizes| !sizes.is_empty())) {
        return String::new();
    }
    let mut text = String::new();
    for (at, dims) in dims.iter().enumerate().take(MOST_INPUTS) {
        if at > 0 {
            text.push(';');
        }
        text.push_str(&sizes(dims).unwrap_or_default());
        let kind = types.get(at).and_then(|kind| plain_string(kind)).unwrap_or_default();
        let value = values.get(at).and_then(|value| number_text(value)).unwrap_or_default();
        if !kind.is_empty() || !value.is_empty() {
            text.push(' ');
            text.push_str(kind);
        }
        if !value.is_empty() {
            text.push('=');
            text.push_str(value);
        }
    }
    text
}

/// The sizes of a tensor, `2x128`, or of the tensors of a list, `(2x128,2x64)`. What is not a
/// number, as a symbol, is `?`. None of what is not a list.
fn sizes(dims: &[u8]) -> Option<String> {
    let dims = elements(dims)?;
    if dims.iter().any(|one| one.first() == Some(&b'[')) {
        let tensors = dims
            .iter()
            .take(MOST_TENSORS)
            .map(|one| elements(one).map_or_else(|| "?".to_owned(), |dims| joined(&dims)));
        return Some(format!("({})", tensors.collect::<Vec<_>>().join(",")));
    }
    Some(joined(&dims))
}

fn joined(dims: &[&[u8]]) -> String {
    let size = |dim: &&[u8]| {
        let is_number = dim.len() <= 18 && dim.iter().all(u8::is_ascii_digit);
        str::from_utf8(dim).ok().filter(|_| is_number && !dim.is_empty()).unwrap_or("?").to_owned()
    };
    dims.iter().map(size).collect::<Vec<_>>().join("x")
}

/// The text of a string of plain characters.
fn plain_string(raw: &[u8]) -> Option<&str> {
    let text = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !b"\\\";=".contains(byte);
    str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| is_plain(&byte)))
}

/// The text of a value that is a number, a truth, or a list of these.
fn number_text(raw: &[u8]) -> Option<&str> {
    let text = plain_string(raw)?;
    let is_number = |word: &str| word.bytes().all(|byte| b"0123456789-".contains(&byte));
    let mut words = text.split([',', ' ', '[', ']']);
    let is_short = text.len() <= LONGEST_VALUE;
    (is_short && words.all(|word| is_number(word) || matches!(word, "True" | "False")))
        .then_some(text)
}

/// The elements of a list, without the space around them; none if it is not one.
fn elements(list: &[u8]) -> Option<Vec<&[u8]>> {
    let inside = list.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut found = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in inside.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.checked_sub(1)?,
            b',' if !in_string && depth == 0 => {
                found.push(inside.get(start..at)?.trim_ascii());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = inside.get(start..)?.trim_ascii();
    if !last.is_empty() || !found.is_empty() {
        found.push(last);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn inputs<'b>(dims: &'b str, types: &'b str, values: &'b str) -> Inputs<'b> {
        let of = |text: &'b str| Cow::Borrowed(text.as_bytes());
        Inputs { dims: of(dims), types: of(types), values: of(values) }
    }

    #[test]
    fn the_short_form() {
        let of = |dims, types, values| short_form(&inputs(dims, types, values));
        assert_eq!(
            of(
                "[[2,1, 128],[],[[3, 4],\n [5]], []]",
                r#"["float", "Scalar", "TensorList", "ScalarList"]"#,
                r#"["", "11", "", "[1, 1]"]"#
            ),
            "2x1x128 float; Scalar=11;(3x4,5) TensorList; ScalarList=[1, 1]"
        );
        // Which gradients are wanted.
        assert_eq!(
            of("[[8], []]", "", r#"["", "[False, True, False]"]"#),
            "8; =[False, True, False]"
        );
        // A symbol, a name, types that are missing, and quotes in a value.
        assert_eq!(of(r#"[["s0", 128, -1]]"#, "", r#"["model.layers.3", "1e-5"]"#), "?x128x?");
        assert_eq!(of("[[8]]", r#"["a\"b"]"#, r#"["\"2\""]"#), "8");
        // Without a tensor nothing is kept.
        for dims in ["[]", "[[], []]", "null", "7", "\"[[2]]\"", "[[2]", ""] {
            assert_eq!(of(dims, r#"["Scalar"]"#, r#"["3"]"#), "", "{dims}");
        }
    }

    #[test]
    fn each_shape_has_one_number() {
        let (mut interner, mut shapes) = (Interner::default(), Names::default());
        let mut id = |dims| interner.id(&inputs(dims, "", ""), &mut shapes);
        assert_eq!([id(""), id("[[]]"), id("[[2, 3]]")], [Some(0), Some(0), Some(1)]);
        assert_eq!([id("[[2,3]]"), id("[[3,2]]"), id("[[2, 3]]")], [Some(1), Some(2), Some(1)]);
        let (mut other, mut all) = (Interner::default(), Names::default());
        other.id(&inputs("[[3, 2]]", "", ""), &mut all);
        assert_eq!(other.absorb(&shapes, &mut all), [Some(0), Some(2), Some(1)]);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut interner, mut shapes) = (Interner::default(), Names::default());
        let mut lost = 0;
        for size in 0..2 * MOST_SHAPES {
            let dims = format!("[[{size}, {size}]]");
            lost += usize::from(interner.id(&inputs(&dims, "", ""), &mut shapes).is_none());
        }
        assert_eq!(shapes.len(), MOST_SHAPES);
        assert_eq!(lost, MOST_SHAPES + 1);
        assert!(interner.seen_bytes <= MOST_SEEN);
    }
}
