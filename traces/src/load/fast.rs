//! The parser for events as profilers write them: one pass over the bytes, nothing copied.
//!
//! Whatever it does not know is [`Stop::Odd`] and goes to the strict parser.

use std::borrow::Cow;

use super::event::{Arg, Args, Category, Event, Field, Inputs};
use super::layout::{Layout, Place};
use super::scan::{Cursor, Stop};
use crate::number::{plain_nanoseconds, plain_whole};

/// A member of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Phase,
    Category,
    Name,
    Process,
    Thread,
    Start,
    Duration,
    Args,
    Other,
    /// None: the event ends.
    End,
}

/// A member of an event's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArgsMember {
    Arg(Arg),
    Other,
    End,
}

/// What a number of an event is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Start,
    Duration,
    Device,
    Stream,
    Correlation,
    ExternalId,
    GraphNode,
    Gradient,
    /// For nothing: it is, or is in, a value that was passed over.
    Skipped,
    /// For nothing either, but it may have a point: it is in an event that is not kept.
    Passed,
}

/// Where in the text of an event a value is.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberAt {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) number: Number,
}

/// How the events of a file are written, as far as that is known.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    event: Layout<Member>,
    /// By category, as each has arguments of its own.
    args: [Layout<ArgsMember>; Category::COUNT],
    /// Where the event that was read last has numbers, and values that were passed over.
    pub(super) numbers: Vec<NumberAt>,
}

/// Reads the event that begins with the first byte, into `event` if it is one that is kept:
/// whether it is, and how many bytes it has.
#[inline]
pub(crate) fn parse<'b>(
    bytes: &'b [u8],
    layouts: &mut Layouts,
    event: &mut Event<'b>,
) -> Result<(bool, usize), Stop> {
    let Layouts { event: layout, args: layouts, numbers } = layouts;
    numbers.clear();
    let mut at = Cursor::new(bytes);
    let mut has_phase = false;
    let mut category = None;
    let mut name = None;
    let mut process = None;
    let mut thread = None;
    let mut start_ns = Field::Missing;
    let mut duration_ns = Field::Missing;
    let mut args = Args::default();
    let mut inputs = Inputs::NONE;
    let mut collective = &b""[..];
    let mut has_args = false;
    let mut place = Place::START;
    loop {
        let member = layout.pass(&mut at, &mut place, member)?;
        if member == Member::End {
            break;
        }
        at.skip_space();
        match member {
            Member::Phase if !has_phase => {
                has_phase = true;
                if at.plain_string()? != b"X" {
                    return not_kept(at, numbers);
                }
            }
            Member::Category if category.is_none() => {
                let kind = Category::of(at.plain_string()?);
                if kind == Category::Other {
                    return not_kept(at, numbers);
                }
                category = Some(kind);
            }
            Member::Name if name.is_none() => name = Some(at.plain_string()?),
            Member::Process if process.is_none() => process = Some(id_text(&mut at)?),
            Member::Thread if thread.is_none() => thread = Some(id_text(&mut at)?),
            Member::Start if start_ns.is_missing() => {
                start_ns = Field::Is(noted(&mut at, numbers, Number::Start, time)?);
            }
            Member::Duration if duration_ns.is_missing() => {
                duration_ns = Field::Is(noted(&mut at, numbers, Number::Duration, time)?);
            }
            Member::Args if !has_args => {
                has_args = true;
                let layout = &mut layouts[category.unwrap_or(Category::Other) as usize];
                let start = at.position();
                if read_args(&mut at, category, layout, numbers, &mut args, &mut inputs)? {
                    collective = at.since(start);
                }
            }
            _ => noted(&mut at, numbers, Number::Skipped, Cursor::skip_value)?,
        }
    }
    let Some(category) = category.filter(|_| has_phase) else {
        numbers.clear();
        return Ok((false, at.position()));
    };
    *event = Event {
        category,
        name: Cow::Borrowed(name.unwrap_or_default()),
        process: Cow::Borrowed(process.unwrap_or_default()),
        thread: Cow::Borrowed(thread.unwrap_or_default()),
        start_ns,
        duration_ns,
        args,
        inputs,
        collective: Cow::Borrowed(collective),
    };
    Ok((true, at.position()))
}

/// Goes to the end of an event that is not kept, whatever it has. The numbers before this place were
/// read as those of any event.
fn not_kept(mut at: Cursor<'_>, numbers: &mut Vec<NumberAt>) -> Result<(bool, usize), Stop> {
    let start = at.position();
    at.skip_to_close(1)?;
    let end = at.position();
    numbers.push(NumberAt { start, end, number: Number::Passed });
    Ok((false, end))
}

/// Goes past what is before the value of a member: which it is.
fn member(at: &mut Cursor<'_>, place: Place) -> Result<Member, Stop> {
    Ok(match at.next_key(place.is_start())? {
        None => Member::End,
        Some(b"ph") => Member::Phase,
        Some(b"cat") => Member::Category,
        Some(b"name") => Member::Name,
        Some(b"pid") => Member::Process,
        Some(b"tid") => Member::Thread,
        Some(b"ts") => Member::Start,
        Some(b"dur") => Member::Duration,
        Some(b"args") => Member::Args,
        Some(_) => Member::Other,
    })
}

/// The same for a member of the arguments.
fn args_member(at: &mut Cursor<'_>, place: Place) -> Result<ArgsMember, Stop> {
    let key = at.next_key(place.is_start())?;
    Ok(key.map_or(ArgsMember::End, |key| Arg::of(key).map_or(ArgsMember::Other, ArgsMember::Arg)))
}

/// Reads a value, and notes where it is.
#[inline(always)]
fn noted<'b, T>(
    at: &mut Cursor<'b>,
    numbers: &mut Vec<NumberAt>,
    number: Number,
    read: impl FnOnce(&mut Cursor<'b>) -> Result<T, Stop>,
) -> Result<T, Stop> {
    let start = at.position();
    let value = read(at)?;
    numbers.push(NumberAt { start, end: at.position(), number });
    Ok(value)
}

#[inline(always)]
pub(super) fn time(at: &mut Cursor<'_>) -> Result<i64, Stop> {
    if at.peek()? == b'"' {
        return time_in_string(at);
    }
    let microseconds = at.digits()?;
    let thousandths = at.thousandths()?;
    at.expect_end_of_number()?;
    let ns = microseconds.checked_mul(1000).and_then(|ns| ns.checked_add(thousandths));
    ns.and_then(|ns| i64::try_from(ns).ok()).ok_or(Stop::Odd)
}

#[cold]
fn time_in_string(at: &mut Cursor<'_>) -> Result<i64, Stop> {
    plain_nanoseconds(at.plain_string()?).ok_or(Stop::Odd)
}

#[inline(always)]
pub(super) fn whole(at: &mut Cursor<'_>) -> Result<u64, Stop> {
    if at.peek()? == b'"' {
        return whole_in_string(at);
    }
    let value = at.digits()?;
    at.expect_end_of_number()?;
    Ok(value)
}

#[cold]
fn whole_in_string(at: &mut Cursor<'_>) -> Result<u64, Stop> {
    plain_whole(at.plain_string()?).ok_or(Stop::Odd)
}

#[inline(always)]
fn id_text<'b>(at: &mut Cursor<'b>) -> Result<&'b [u8], Stop> {
    if at.peek()? == b'"' {
        return at.plain_string();
    }
    let start = at.position();
    whole(at)?;
    Ok(at.since(start))
}

/// Reads the arguments of an event: whether they are of a kernel and name its collective.
#[inline]
fn read_args<'b>(
    at: &mut Cursor<'b>,
    category: Option<Category>,
    layout: &mut Layout<ArgsMember>,
    numbers: &mut Vec<NumberAt>,
    args: &mut Args,
    inputs: &mut Inputs<'b>,
) -> Result<bool, Stop> {
    if at.peek()? != b'{' || category == Some(Category::Frame) {
        noted(at, numbers, Number::Skipped, Cursor::skip_value)?;
        return Ok(false);
    }
    let mut is_collective = false;
    let mut place = Place::START;
    loop {
        let member = layout.pass(at, &mut place, args_member)?;
        let arg = match member {
            ArgsMember::End => return Ok(is_collective),
            ArgsMember::Arg(arg) => Some(arg),
            ArgsMember::Other => None,
        };
        at.skip_space();
        match arg {
            Some(Arg::Device) if args.device.is_missing() => {
                args.device = noted(at, numbers, Number::Device, signed)?;
            }
            Some(Arg::Stream) if args.stream.is_missing() => {
                args.stream = noted(at, numbers, Number::Stream, signed)?;
            }
            Some(Arg::Correlation) if args.correlation.is_missing() => {
                args.correlation = noted(at, numbers, Number::Correlation, id)?;
            }
            Some(Arg::ExternalId) if args.external_id.is_missing() => {
                args.external_id = noted(at, numbers, Number::ExternalId, id)?;
            }
            Some(Arg::GraphNode) if args.graph_node.is_missing() => {
                args.graph_node = noted(at, numbers, Number::GraphNode, id)?;
            }
            Some(Arg::Gradient) if args.gradient.is_missing() => {
                args.gradient = noted(at, numbers, Number::Gradient, id)?;
            }
            Some(Arg::Dims) if inputs.dims.is_empty() => inputs.dims = passed(at)?,
            Some(Arg::Types) if inputs.types.is_empty() => inputs.types = passed(at)?,
            Some(Arg::Values) if inputs.values.is_empty() => inputs.values = passed(at)?,
            Some(Arg::Collective) => {
                is_collective = category == Some(Category::Kernel);
                at.skip_value()?;
            }
            _ => noted(at, numbers, Number::Skipped, Cursor::skip_value)?,
        }
    }
}

/// Goes past a value of any kind: its text.
#[inline(always)]
fn passed<'b>(at: &mut Cursor<'b>) -> Result<Cow<'b, [u8]>, Stop> {
    let start = at.position();
    at.skip_value()?;
    Ok(Cow::Borrowed(at.since(start)))
}

#[inline(always)]
fn id(at: &mut Cursor<'_>) -> Result<Field<u64>, Stop> {
    whole(at).map(Field::Is)
}

#[inline(always)]
fn signed(at: &mut Cursor<'_>) -> Result<Field<i64>, Stop> {
    i64::try_from(whole(at)?).map(Field::Is).map_err(|_| Stop::Odd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Texts that an event is put together from, few enough that layouts repeat, or nearly.
    fn event() -> impl Strategy<Value = String> {
        let between = |texts: &'static [&'static str]| prop::sample::select(texts);
        (
            between(&[
                "{\"ph\": \"X\"",
                "{\n \"ph\": \"X\"",
                "{\"ph\": \"s\"",
                "{ \"cat\": \"kernel\"",
            ]),
            between(&[
                ", \"cat\": \"kernel\"",
                ", \"cat\": \"cpu_op\"",
                ",\"cat\":\"cuda_runtime\"",
            ]),
            between(&[", \"ts\": 1.500", ", \"ts\":  12", " , \"ts\": \"7.25\"", ", \"ts\": 1e3"]),
            between(&[", \"args\": {", ", \"args\": { ", ", \"args\":{", ", \"ts\": {"]),
            between(&[
                "\"stream\": 7, ",
                "\"device\": 1, ",
                "\"ts\": 3,",
                "\"grid\": [1, {}], ",
                "",
            ]),
            between(&["\"correlation\": 9}", "\"ts\": 3} ", "\"External id\": 5, \"x\": 2}", "}"]),
            between(&[
                "}",
                ", \"dur\": 0.125}",
                "\n}",
                " , \"name\": \"a}\"  }",
                ", \"ph\": 1}",
                "]",
            ]),
        )
            .prop_map(|(a, b, c, d, e, f, g)| [a, b, c, d, e, f, g].concat())
    }

    proptest! {
        #[test]
        fn events_before_make_no_difference(events in prop::collection::vec(event(), 1..60)) {
            let mut layouts = Layouts::default();
            for text in events {
                let text = format!("{text}, {{\"ph\": \"M\", \"name\": \"the event that follows\"}}");
                let read = |layouts: &mut Layouts| {
                    let mut event = Event::NONE;
                    let read = parse(text.as_bytes(), layouts, &mut event);
                    read.map(|(is_kept, used)| (is_kept.then_some(event), used))
                };
                prop_assert_eq!(read(&mut layouts), read(&mut Layouts::default()));
            }
        }
    }
}
