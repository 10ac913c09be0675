//! Attributes of nodes.

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Attribute {
    Int(i64),
    Float(f64),
    Text(String),
    Ints(Vec<i64>),
    /// One that no rule looks at: a graph, a list of texts, a type.
    Other,
}

/// The attributes of a node, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Attributes(Vec<(String, Attribute)>);

impl Attributes {
    fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.iter().find(|(of, _)| of == name).map(|(_, value)| value)
    }

    /// A whole number.
    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Attribute::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// A number.
    #[expect(clippy::cast_precision_loss, reason = "where JSON has 1 for 1.0, it is small")]
    pub(crate) fn float(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Attribute::Float(value) => Some(*value),
            Attribute::Int(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Attribute::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A list of whole numbers.
    pub(crate) fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.get(name)? {
            Attribute::Ints(values) => Some(values),
            _ => None,
        }
    }
}

impl FromIterator<(String, Attribute)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (String, Attribute)>>(attributes: I) -> Self {
        Self(attributes.into_iter().collect())
    }
}
