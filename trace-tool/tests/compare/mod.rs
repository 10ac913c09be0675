//! The reports of `calibrate trace compare`, and the command as a user meets it.

mod browser;
mod command;
mod csv;
mod example;
mod headless;
mod json;
mod page;
mod ranks;
mod real;
mod schema;
mod text;
mod work;
