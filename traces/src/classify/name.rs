//! A kernel's name taken apart: namespaces, base name, and the words of its template arguments.
//!
//! Both spellings give the same parts: `void at::native::f<4, Add<float>>(int)` and
//! `_ZN2at6native1fILi4E3AddIfEEEvi`. Return types and parameters are dropped. The mangled form is
//! scanned, not demangled: the scan needs only identifiers, literals and nesting, works on
//! truncated names and on constructs newer than a demangler, and cannot fail.

/// Names are read up to this many bytes, and the words of template arguments up to as many as that.
const NAME_LIMIT: usize = 16 * 1024;
const ARGS_LIMIT: usize = 4096;

/// A name's parts, all in lower case.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// The whole name.
    pub(super) name: String,
    /// Namespaces: `at::native`.
    pub(super) space: String,
    /// The last component without template arguments.
    pub(super) base: String,
    /// The words of the base name, `_` between and around them: `RMSNormKernel` is
    /// `_rms_norm_kernel_`.
    pub(super) words: String,
    /// Identifiers and literals of the template arguments, a space between and around them;
    /// an enum's literal is `type=value`.
    pub(super) args: String,
}

impl Parts {
    pub(super) fn of(name: &str) -> Self {
        let name = name.trim();
        let mut end = name.len().min(NAME_LIMIT);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = &name[..end];
        let bare = name.strip_suffix("[clone .kd]").unwrap_or(name).trim_end();
        let bare = bare.strip_suffix(".kd").unwrap_or(bare);
        let bare = bare.strip_prefix("__device_stub__").unwrap_or(bare);
        let mut raw = match bare.strip_prefix("_Z") {
            Some(encoded) => mangled(encoded.as_bytes()),
            None => demangled(bare),
        };
        if raw.base.is_empty() {
            raw.base = bare.chars().take(200).collect();
        }
        Self {
            name: name.to_ascii_lowercase(),
            words: words(&raw.base),
            space: raw.space.to_ascii_lowercase(),
            base: raw.base.to_ascii_lowercase(),
            args: raw.args.to_ascii_lowercase(),
        }
    }
}

/// The parts before they are put in lower case.
#[derive(Default)]
struct Raw {
    space: String,
    base: String,
    args: String,
}

impl Raw {
    /// One more component of the qualified name.
    fn component(&mut self, name: &str) {
        if !name.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
            return;
        }
        if !self.base.is_empty() {
            if !self.space.is_empty() {
                self.space.push_str("::");
            }
            let base = std::mem::take(&mut self.base);
            self.space.push_str(&base);
        }
        name.clone_into(&mut self.base);
    }

    /// One more word of the template arguments.
    fn argument(&mut self, word: &str) {
        if self.args.is_empty() {
            self.args.push(' ');
        }
        if self.args.len() < ARGS_LIMIT {
            self.args.push_str(word);
            self.args.push(' ');
        }
    }

    /// The value of the enum that was the last argument.
    fn enum_value(&mut self, value: &str) {
        if self.args.ends_with(' ') {
            self.args.pop();
        }
        self.args.push('=');
        self.args.push_str(value);
        self.args.push(' ');
    }
}

/// `RMSNormKernel` and `rms_norm_kernel` to `_rms_norm_kernel_`.
pub(super) fn words(name: &str) -> String {
    let bytes = name.as_bytes();
    let mut out = String::with_capacity(name.len() + 8);
    out.push('_');
    for (i, &byte) in bytes.iter().enumerate() {
        if !byte.is_ascii_alphanumeric() {
            if !out.ends_with('_') {
                out.push('_');
            }
            continue;
        }
        let before = if i == 0 { b'_' } else { bytes[i - 1] };
        let after = bytes.get(i + 1).copied().unwrap_or(b'_');
        let starts_word = byte.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit() && after.is_ascii_lowercase()
                || before.is_ascii_uppercase() && after.is_ascii_lowercase());
        if starts_word && !out.ends_with('_') {
            out.push('_');
        }
        out.push(char::from(byte.to_ascii_lowercase()));
    }
    if !out.ends_with('_') {
        out.push('_');
    }
    out
}

const fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte == b'.' || byte >= 0x80
}

/// The identifier that starts at `from`.
fn ident(text: &str, from: usize) -> &str {
    let bytes = text.as_bytes();
    let mut end = from;
    while end < bytes.len() && is_ident(bytes[end]) {
        end += 1;
    }
    &text[from..end]
}

/// Where the bracket at `open` is closed; the end of the text if it never is.
fn closing(bytes: &[u8], open: usize) -> usize {
    let mut stack = Vec::new();
    let mut i = open;
    while i < bytes.len() {
        match bytes[i] {
            b @ (b'<' | b'(' | b'{' | b'[') => stack.push(b),
            b'>' if i > 0 && bytes[i - 1] == b'-' => {}
            // A `>` inside parentheses is a comparison.
            b'>' if stack.last() == Some(&b'<') => {
                stack.pop();
            }
            b @ (b')' | b'}' | b']') => {
                let opener = match b {
                    b')' => b'(',
                    b'}' => b'{',
                    _ => b'[',
                };
                if let Some(at) = stack.iter().rposition(|&o| o == opener) {
                    stack.truncate(at);
                }
            }
            _ => {}
        }
        if stack.is_empty() {
            return i;
        }
        i += 1;
    }
    bytes.len()
}

const ANONYMOUS: &str = "(anonymous namespace)";

fn demangled(text: &str) -> Raw {
    let bytes = text.as_bytes();
    let mut raw = Raw::default();
    let mut fresh = false;
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'(' if text[i..].starts_with(ANONYMOUS) => {
                if fresh {
                    raw = Raw::default();
                    fresh = false;
                }
                i += ANONYMOUS.len();
            }
            // Parameters: the name ends.
            b'(' => break,
            b'<' => {
                let end = closing(bytes, i);
                arguments(&text[i + 1..end.max(i + 1).min(bytes.len())], &mut raw);
                i = end + 1;
            }
            b'{' | b'[' => i = closing(bytes, i) + 1,
            b' ' | b'*' | b'&' => {
                // What came before was the return type, if another name follows.
                fresh = true;
                i += 1;
            }
            byte if is_ident(byte) => {
                let name = ident(text, i);
                i += name.len();
                if fresh {
                    raw = Raw::default();
                    fresh = false;
                }
                if name == "operator" {
                    while i < bytes.len() && !is_ident(bytes[i]) && bytes[i] != b'(' {
                        i += 1;
                    }
                    if text[i..].starts_with("()") {
                        i += 2;
                    }
                }
                raw.component(name);
            }
            _ => i += 1,
        }
    }
    raw
}

/// The words of demangled template arguments. Parameter lists and lambdas say nothing.
fn arguments(text: &str, raw: &mut Raw) {
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() && raw.args.len() < ARGS_LIMIT {
        match bytes[i] {
            b'(' if text[i..].starts_with(ANONYMOUS) => i += ANONYMOUS.len(),
            // `&(float relu<float>(float))` is the address of a function.
            b'(' if i > 0 && bytes[i - 1] == b'&' => {
                let end = closing(bytes, i);
                raw.argument(&demangled(&text[i + 1..end.max(i + 1)]).base);
                i = end + 1;
            }
            b'(' => {
                let end = closing(bytes, i);
                let after = end + 1;
                // `(Enum)3` is a literal.
                let value = text.get(after..).map_or("", |_| ident(text, after));
                if value.starts_with(|c: char| c.is_ascii_digit()) {
                    let inside = &text[i + 1..end];
                    raw.argument(inside.rsplit("::").next().unwrap_or(inside));
                    raw.enum_value(value);
                    i = after + value.len();
                } else {
                    i = after;
                }
            }
            b'{' | b'[' => i = closing(bytes, i) + 1,
            byte if is_ident(byte) => {
                let word = ident(text, i);
                i += word.len();
                raw.argument(word);
            }
            _ => i += 1,
        }
    }
}

/// What an `E` closes, in a mangled name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// `N`, `X`, `F`, `Z`, `Ul`.
    Scope,
    /// `I` or `J`: template arguments.
    Args,
    /// `L`: a literal whose type is being read.
    Literal,
    /// `L_Z`: the name of a function as an argument.
    Function,
}

fn mangled(bytes: &[u8]) -> Raw {
    let mut raw = Raw::default();
    let mut open: Vec<Open> = Vec::new();
    let mut args = 0_usize;
    let mut i = usize::from(bytes.first() == Some(&b'L'));
    let nested = bytes.get(i) == Some(&b'N');
    while i < bytes.len() && raw.args.len() < ARGS_LIMIT {
        let after = bytes.get(i + 1).copied().unwrap_or(0);
        let mut typed = false;
        match bytes[i] {
            b'0'..=b'9' => {
                let digits = bytes[i..].iter().take_while(|b| b.is_ascii_digit()).count();
                let start = i + digits;
                let length = digits_value(&bytes[i..start]).unwrap_or(usize::MAX);
                let end = start.saturating_add(length).min(bytes.len());
                let name = String::from_utf8_lossy(&bytes[start..end]);
                i = end;
                typed = true;
                if args > 0 {
                    raw.argument(&name);
                } else if !name.starts_with("_GLOBAL__N") {
                    raw.component(&name);
                }
                if !nested && open.is_empty() && bytes.get(i) != Some(&b'I') {
                    break;
                }
            }
            b'N' | b'X' | b'F' | b'Z' => {
                open.push(Open::Scope);
                i += 1;
            }
            b'U' if after == b'l' => {
                open.push(Open::Scope);
                i += 2;
            }
            b'I' | b'J' => {
                open.push(Open::Args);
                args += 1;
                i += 1;
            }
            b'L' if bytes[i..].starts_with(b"L_Z") => {
                open.push(Open::Function);
                i += 3;
            }
            b'L' if after.is_ascii_lowercase() => {
                let end = find(bytes, i + 2, b'E');
                let value = String::from_utf8_lossy(&bytes[i + 2..end]);
                raw.argument(match (after, &*value) {
                    (b'b', "0") => "false",
                    (b'b', _) => "true",
                    _ => &value,
                });
                i = end + 1;
            }
            b'L' => {
                open.push(Open::Literal);
                i += 1;
            }
            // A substitution, a template parameter, an array: not the length of a name.
            b'S' | b'T'
                if after == b'_' || after.is_ascii_digit() || after.is_ascii_uppercase() =>
            {
                i = find(bytes, i + 1, b'_') + 1;
                typed = true;
            }
            b'S' | b'T' => i += 2,
            b'A' => i = find(bytes, i + 1, b'_') + 1,
            b'D' if after == b'F' => {
                i += 2;
                i += bytes[i..].iter().take_while(|b| b.is_ascii_digit()).count() + 1;
            }
            b'D' if matches!(after, b'v' | b'B' | b'U') => i = find(bytes, i + 2, b'_') + 1,
            b'D' | b'C' => i += 2,
            b'E' => {
                i += 1;
                match open.pop() {
                    Some(Open::Args) => args = args.saturating_sub(1),
                    Some(Open::Scope) => {
                        typed = true;
                        // `_0`, `1_`: which lambda, or which entity of a function.
                        if bytes.get(i).is_some_and(u8::is_ascii_digit) {
                            let digits =
                                bytes[i..].iter().take_while(|b| b.is_ascii_digit()).count();
                            if bytes.get(i + digits) == Some(&b'_') {
                                i += digits + 1;
                            }
                        }
                    }
                    _ => {}
                }
                // What follows is the signature.
                if open.is_empty() {
                    break;
                }
            }
            _ => i += 1,
        }
        if typed && open.last() == Some(&Open::Literal) && bytes.get(i) != Some(&b'I') {
            let end = find(bytes, i, b'E');
            raw.enum_value(&String::from_utf8_lossy(&bytes[i.min(end)..end]));
            open.pop();
            i = end + 1;
        }
    }
    raw
}

fn digits_value(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Where `what` is at or after `from`; the end of the text if nowhere.
fn find(bytes: &[u8], from: usize, what: u8) -> usize {
    let from = from.min(bytes.len());
    bytes[from..].iter().position(|&b| b == what).map_or(bytes.len(), |at| from + at)
}
