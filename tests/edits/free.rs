//! What may be changed alone, and why.

use super::edit::Change;

/// Keys for which nothing in the file speaks against some changes.
pub(crate) struct Free {
    pub(crate) why: &'static str,
    pub(crate) changes: &'static [Change],
    pub(crate) paths: &'static [&'static str],
}

pub(crate) const FREE: &[Free] = &[];
