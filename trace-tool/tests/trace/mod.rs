//! The trace tool as a user meets it.

#[cfg(feature = "parquet")]
mod idle;
mod index;
#[cfg(feature = "parquet")]
mod many_ranks;
mod outputs;
mod phases;
mod program;
mod ranks;
mod rates;
mod reports;
#[cfg(target_os = "linux")]
mod shrinking;
mod sources;
