//! How the file differs from what the profiler of today writes.

/// A way in which traces of real life differ from the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    /// The metadata comes after the events.
    MetadataLast,
    /// There is no metadata: the file is a list of events.
    BareList,
    /// The events are in several lists.
    DictOfLists,
    /// Categories and keys as of 2022.
    Capitalised,
    /// Times are whole microseconds.
    WholeTimes,
    /// Times are strings.
    StringTimes,
    /// Times have an exponent.
    ExponentTimes,
    /// Some names are not UTF-8.
    InvalidUtf8,
    /// Some names have a tab in them.
    ControlCharacters,
    /// Some operators are broken by a quote that is not escaped.
    UnescapedQuotes,
    /// Some ids do not fit into 64 bits.
    HugeIds,
    /// The devices have no names.
    EmptyNames,
    /// There are no devices.
    NoDevices,
    /// No spaces and no line ends.
    Compact,
    /// Keys in another order, and unknown ones.
    OtherKeys,
    /// Every kernel shares its correlation id with the others of its layer, as when each layer is
    /// replayed from one graph, whatever the plan says about launching.
    Graphs,
}

impl Oddity {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::MetadataLast,
        Self::BareList,
        Self::DictOfLists,
        Self::Capitalised,
        Self::WholeTimes,
        Self::StringTimes,
        Self::ExponentTimes,
        Self::InvalidUtf8,
        Self::ControlCharacters,
        Self::UnescapedQuotes,
        Self::HugeIds,
        Self::EmptyNames,
        Self::NoDevices,
        Self::Compact,
        Self::OtherKeys,
        Self::Graphs,
    ];
}
