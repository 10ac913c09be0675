//! The headers that kernels include, as they were when this was built.

macro_rules! headers {
    ($($name:literal),* $(,)?) => {
        /// Name and text of every header.
        pub(crate) const HEADERS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../gpu/", $name)))),*];
    };
}

headers!["port.h", "matrix_core.h"];
