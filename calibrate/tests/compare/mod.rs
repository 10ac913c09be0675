//! `calibrate compare` as a user meets it.

#[path = "../../../tests/consistent/mod.rs"]
mod consistent;
mod made;
mod pages;
mod program;
