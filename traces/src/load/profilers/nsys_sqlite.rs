//! The database of NVIDIA's Nsight Systems.
//!
//! Its tables are documented under "SQLite Schema Reference" in the user guide of Nsight Systems. A
//! table that would be empty is missing, and columns differ between versions: what is missing is
//! read as `NULL`. Names are numbers of `StringIds`, and times are nanoseconds.

use std::borrow::Cow;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, OpenFlags, Row};
use rustc_hash::FxHashMap;

use super::super::event::{Category, Event};
use super::Reader;
use super::events::{OnDevice, Span, event, launch, without_version};
use super::nsys_lines::{copy, correlation, process_and_thread, threads};
use crate::{Device, Warning};

/// A table, and what is read of it. All of them begin with `start` and `end`.
struct Table {
    name: &'static str,
    columns: &'static [&'static str],
    add: fn(&mut Rows<'_, '_>, &Row<'_>) -> Result<(), Error>,
}

/// The tables with events, in the order in which they are read.
static TABLES: [Table; 5] = [
    Table {
        name: "CUPTI_ACTIVITY_KIND_RUNTIME",
        columns: &["start", "end", "nameId", "globalTid", "correlationId"],
        add: |rows, row| rows.call(row),
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_KERNEL",
        columns: &[
            "start",
            "end",
            "deviceId",
            "streamId",
            "correlationId",
            "globalPid",
            "demangledName",
            "shortName",
            "graphNodeId",
        ],
        add: |rows, row| rows.kernel(row),
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_MEMCPY",
        columns: &[
            "start",
            "end",
            "deviceId",
            "streamId",
            "correlationId",
            "globalPid",
            "copyKind",
            "graphNodeId",
        ],
        add: |rows, row| rows.memcpy(row),
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_MEMSET",
        columns: &[
            "start",
            "end",
            "deviceId",
            "streamId",
            "correlationId",
            "globalPid",
            "graphNodeId",
        ],
        add: |rows, row| rows.memset(row),
    },
    Table {
        name: "NVTX_EVENTS",
        columns: &["start", "end", "text", "textId", "globalTid"],
        add: |rows, row| rows.mark(row),
    },
];

/// The table of launches of graphs that are recorded as a whole.
const GRAPHS: &str = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";

/// Reads a database; or why it is not a recording.
pub(super) fn read(path: &Path, reader: &mut Reader<'_>) -> Result<(), String> {
    let damaged = |error: Error| format!("it is an SQLite database that cannot be read: {error}");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags).map_err(damaged)?;
    // Whoever made the file shall not make it run anything, nor a cell be larger than its page.
    database
        .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")
        .map_err(damaged)?;
    let mut found = Vec::new();
    for table in &TABLES {
        if is_table(&database, table.name).map_err(damaged)? {
            found.push(table);
        }
    }
    if found.is_empty() && !is_table(&database, "StringIds").map_err(damaged)? {
        return Err("it is an SQLite database without the tables of Nsight Systems; that of \
                    rocprofv3 can be read after rocpd convert --output-format csv"
            .to_owned());
    }
    let mut rows =
        Rows { reader, strings: FxHashMap::default(), devices: FxHashMap::default(), row: 0 };
    rows.part("TARGET_INFO_GPU", |rows| rows.read_gpus(&database));
    if rows.reader.head_only {
        return Ok(());
    }
    rows.part("TARGET_INFO_CUDA_DEVICE", |rows| rows.read_devices(&database));
    rows.part("StringIds", |rows| rows.read_strings(&database));
    for table in found {
        rows.part(table.name, |rows| rows.read_table(&database, table));
    }
    rows.part(GRAPHS, |rows| rows.count_graphs(&database));
    Ok(())
}

/// Whether there is a table with rows of its own under a name: a view or a virtual table of that
/// name could compute without end.
fn is_table(database: &Connection, name: &str) -> Result<bool, Error> {
    let sql = "SELECT count(*) FROM sqlite_master \
               WHERE type = 'table' AND name = ?1 AND sql NOT LIKE 'CREATE VIRTUAL%'";
    database.query_row(sql, [name], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

/// What is known while tables are read.
struct Rows<'r, 'w> {
    reader: &'r mut Reader<'w>,
    strings: FxHashMap<i64, Box<str>>,
    /// The device of the machine by a process and its number of a device there.
    devices: FxHashMap<(i64, i64), i64>,
    /// Rows so far, which stand for places in the file.
    row: u64,
}

impl Rows<'_, '_> {
    /// Reads a part of the database as far as it is whole.
    fn part(&mut self, name: &str, read: impl FnOnce(&mut Self) -> Result<(), Error>) {
        if let Err(error) = read(self) {
            let (table, reason) = (name.to_owned(), error.to_string());
            self.reader.warnings.push(Warning::DamagedTable { table, reason });
        }
    }

    fn read_gpus(&mut self, database: &Connection) -> Result<(), Error> {
        let columns = [
            "id",
            "name",
            "totalMemory",
            "smCount",
            "threadsPerWarp",
            "computeMajor",
            "computeMinor",
        ];
        each(database, "TARGET_INFO_GPU", &columns, |row| {
            let number =
                |column| Ok::<_, Error>(whole(row, column)?.and_then(|it| it.try_into().ok()));
            self.reader.metadata.devices.push(Device {
                id: whole(row, 0)?.unwrap_or(-1),
                name: text(row, 1)?.unwrap_or_default().into_owned(),
                memory_bytes: number(2)?,
                multiprocessors: number(3)?,
                warp_size: number(4)?,
                compute_capability: number(5)?.zip(number(6)?),
            });
            Ok(())
        })
    }

    fn read_devices(&mut self, database: &Connection) -> Result<(), Error> {
        each(database, "TARGET_INFO_CUDA_DEVICE", &["pid", "cudaId", "gpuId"], |row| {
            let (pid, cuda, gpu) = (whole(row, 0)?, whole(row, 1)?, whole(row, 2)?);
            if let (Some(pid), Some(cuda), Some(gpu)) = (pid, cuda, gpu) {
                self.devices.insert((pid, cuda), gpu);
            }
            Ok(())
        })
    }

    fn read_strings(&mut self, database: &Connection) -> Result<(), Error> {
        each(database, "StringIds", &["id", "value"], |row| {
            if let (Some(id), Some(value)) = (whole(row, 0)?, text(row, 1)?) {
                self.strings.insert(id, value.into());
            }
            Ok(())
        })
    }

    fn read_table(&mut self, database: &Connection, table: &Table) -> Result<(), Error> {
        each(database, table.name, table.columns, |row| {
            self.row += 1;
            (table.add)(self, row)
        })
    }

    /// A graph that was recorded as a whole hides its kernels.
    fn count_graphs(&mut self, database: &Connection) -> Result<(), Error> {
        let mut count = 0;
        each(database, GRAPHS, &["start"], |_| {
            count += 1;
            Ok(())
        })?;
        if count > 0 {
            self.reader.warnings.push(Warning::WholeGraphs { count });
        }
        Ok(())
    }

    fn string(&self, id: Option<i64>) -> Option<&str> {
        self.strings.get(&id?).map(|text| &**text)
    }

    fn add(&mut self, event: &Event<'_>) {
        self.reader.builder.add(Some(event), self.row);
    }

    /// A call of the runtime or the driver.
    fn call(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let global = whole(row, 3)?;
        let (process, thread) = threads(global);
        let name = without_version(self.string(whole(row, 2)?).unwrap_or_default()).to_owned();
        self.add(&Event {
            process: Cow::Borrowed(process.as_bytes()),
            thread: Cow::Borrowed(thread.as_bytes()),
            args: launch(correlation(whole(row, 4)?, global)),
            ..event(Category::Launch, &name, span(row)?)
        });
        Ok(())
    }

    fn kernel(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let full = self.string(whole(row, 6)?);
        let name = full.or(self.string(whole(row, 7)?)).unwrap_or_default().to_owned();
        self.on_device(row, event(Category::Kernel, &name, span(row)?), 8)
    }

    fn memcpy(&mut self, row: &Row<'_>) -> Result<(), Error> {
        self.on_device(row, event(Category::Memcpy, copy(whole(row, 6)?), span(row)?), 7)
    }

    fn memset(&mut self, row: &Row<'_>) -> Result<(), Error> {
        self.on_device(row, event(Category::Memset, "Memset", span(row)?), 6)
    }

    /// Adds what ran on a device; the columns of the tables of these are alike.
    fn on_device(
        &mut self,
        row: &Row<'_>,
        event: Event<'_>,
        graph_node: usize,
    ) -> Result<(), Error> {
        let (device, global) = (whole(row, 2)?, whole(row, 5)?);
        let (process, _) = global.map_or((0, 0), process_and_thread);
        // Processes may see one device each, and all call it 0.
        let gpu = device.and_then(|device| self.devices.get(&(process, device)).copied());
        let place = OnDevice {
            device: gpu.or(device),
            stream: whole(row, 3)?,
            correlation: correlation(whole(row, 4)?, global),
            graph_node: whole(row, graph_node)?.and_then(|node| node.try_into().ok()),
        };
        self.add(&Event { args: place.args(), ..event });
        Ok(())
    }

    /// A range that the program marked. What has no end is a moment, or the name of a thread.
    fn mark(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let span = span(row)?;
        let own = text(row, 2)?;
        let name = match &own {
            Some(own) => Some(&**own),
            None => self.string(whole(row, 3)?),
        };
        let Some(name) = name.filter(|_| span.end.is_some()).map(str::to_owned) else {
            self.reader.builder.add(None, self.row);
            return Ok(());
        };
        let (process, thread) = threads(whole(row, 4)?);
        self.add(&Event {
            process: Cow::Borrowed(process.as_bytes()),
            thread: Cow::Borrowed(thread.as_bytes()),
            ..event(Category::Annotation, &name, span)
        });
        Ok(())
    }
}

/// Reads columns of a table, if it is there. A column that it lacks is `NULL`.
fn each(
    database: &Connection,
    table: &str,
    columns: &[&str],
    mut add: impl FnMut(&Row<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if !is_table(database, table)? {
        return Ok(());
    }
    let mut known = Vec::new();
    // Without the columns that the file computes.
    let mut about = database.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let mut rows = about.query([table])?;
    while let Some(row) = rows.next()? {
        known.push(row.get::<_, String>(0)?);
    }
    let columns = columns.iter().map(|column| {
        if known.iter().any(|known| known == column) {
            format!("\"{column}\"")
        } else {
            "NULL".to_owned()
        }
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    let mut statement = database.prepare(&format!("SELECT {columns} FROM \"{table}\""))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        add(row)?;
    }
    Ok(())
}

/// When the event of a row began and ended.
fn span(row: &Row<'_>) -> Result<Span, Error> {
    Ok(Span { start: whole(row, 0)?, end: whole(row, 1)? })
}

/// A number; none for anything else.
fn whole(row: &Row<'_>, column: usize) -> Result<Option<i64>, Error> {
    match row.get_ref(column)? {
        ValueRef::Integer(number) => Ok(Some(number)),
        _ => Ok(None),
    }
}

/// A text; none for anything else.
fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<Cow<'r, str>>, Error> {
    match row.get_ref(column)? {
        ValueRef::Text(bytes) => Ok(Some(String::from_utf8_lossy(bytes))),
        _ => Ok(None),
    }
}
