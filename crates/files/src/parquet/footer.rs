//! Checks of the schema at the end of a file before the library reads it.
//!
//! The library builds the tree of columns by recursion, allocates a node for every child that a group claims to have,
//! and copies the names of all groups around a column. A small file can exhaust the stack or the memory with either.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

use parquet::errors::ParquetError;

use super::thrift::{BINARY, DEPTH, I32, LIST, STRUCT, Thrift, invalid};

/// Groups of a schema are not nested deeper.
const GROUPS: usize = 64;

/// Maximum number of bytes of the names of all columns, each with the names of the groups around it.
const NAMES: u64 = 16 << 20;

/// Checks the schema in a file.
///
/// # Errors
/// A file that is not complete, or a schema that is nested too deep or claims more than it has.
pub(super) fn check(file: &File) -> Result<(), ParquetError> {
    read(file).map_err(|_| ParquetError::General("it is not complete, or damaged".to_owned()))
}

fn read(mut file: &File) -> io::Result<()> {
    let mut tail = [0; 8];
    let end = file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut tail)?;
    let [length @ .., b'P', b'A', b'R', b'1'] = tail else {
        return Err(invalid());
    };
    let length = u32::from_le_bytes(length).into();
    let start = end.checked_sub(length).ok_or_else(invalid)?;
    file.seek(SeekFrom::Start(start))?;
    check_schema(
        &mut Thrift::new(io::BufReader::new(file).take(length)),
        length,
    )
}

/// Checks the schema, which is the second field of the description.
fn check_schema(input: &mut Thrift<impl Read>, length: u64) -> io::Result<()> {
    let mut last = 0;
    // A field may be repeated, and the library uses the last one.
    while let Some((field, kind)) = input.field(&mut last)? {
        if (field, kind) != (2, LIST) {
            input.skip(kind, DEPTH)?;
            continue;
        }
        match input.list()? {
            (nodes, STRUCT) if nodes <= length => check_nodes(input, nodes)?,
            _ => return Err(invalid()),
        }
    }
    Ok(())
}

/// A group that is not complete.
struct Group {
    children: u64,
    /// Bytes of its name and the names of the groups around it.
    names: u64,
}

/// Checks the nodes of the tree, each of which is followed by its children.
fn check_nodes(input: &mut Thrift<impl Read>, nodes: u64) -> io::Result<()> {
    let mut groups: Vec<Group> = Vec::new();
    let mut names = 0u64;
    for node in 0..nodes {
        let (name, children) = read_node(input)?;
        let around = groups.last().map_or(0, |group| group.names);
        if children > nodes - node - 1 {
            return Err(invalid());
        }
        if let Some(group) = groups.last_mut() {
            group.children -= 1;
        }
        names = names.saturating_add(around).saturating_add(name);
        groups.push(Group {
            children,
            names: around.saturating_add(name),
        });
        while groups.last().is_some_and(|group| group.children == 0) {
            groups.pop();
        }
        if groups.len() > GROUPS || names > NAMES {
            return Err(invalid());
        }
    }
    Ok(())
}

/// Returns the number of bytes of a node's name, and the number of its children.
fn read_node(input: &mut Thrift<impl Read>) -> io::Result<(u64, u64)> {
    let (mut name, mut children) = (0, 0);
    let mut last = 0;
    while let Some((field, kind)) = input.field(&mut last)? {
        match (field, kind) {
            (4, BINARY) => {
                name = input.unsigned()?;
                input.bytes(name)?;
            }
            (5, I32) => children = input.size()?,
            _ => input.skip(kind, DEPTH)?,
        }
    }
    Ok((name, children))
}
