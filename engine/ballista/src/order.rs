//! One task as a row: the computation and the places of its inputs.
//!
//! An order names every input with its SHA-256, so that all executors compute the same result. It has no secrets.

use datafusion::error::{DataFusionError, Result};
use fhaim_he::{
    BlobPlace, Columns, Layout, ParameterSet, Parameters, ProductKey, Section, TileTask,
    UploadKeyId,
};
use prost::Message;
use std::sync::Arc;

/// A [`BlobPlace`] on the wire.
#[derive(Clone, PartialEq, Eq, Message)]
struct WirePlace {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bytes = "vec", tag = "2")]
    digest: Vec<u8>,
}

/// A [`Section`] on the wire. It begins at the end of the previous section.
#[derive(Clone, PartialEq, Eq, Message)]
struct WireSection {
    #[prost(uint64, tag = "1")]
    end: u64,
    /// The upload key's name; empty for the joint key.
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct WireOrder {
    #[prost(bytes = "vec", tag = "1")]
    task: Vec<u8>,
    #[prost(uint32, tag = "2")]
    shares: u32,
    #[prost(message, optional, tag = "3")]
    keys: Option<WirePlace>,
    #[prost(message, repeated, tag = "4")]
    objects: Vec<WirePlace>,
    #[prost(uint64, tag = "5")]
    memory: u64,
    #[prost(message, optional, tag = "6")]
    holder: Option<WirePlace>,
    #[prost(message, repeated, tag = "7")]
    sections: Vec<WireSection>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct WirePacking {
    #[prost(uint32, tag = "1")]
    set: u32,
    #[prost(uint32, tag = "2")]
    shares: u32,
    #[prost(message, optional, tag = "3")]
    keys: Option<WirePlace>,
    #[prost(uint64, tag = "4")]
    chunks: u64,
    #[prost(uint64, tag = "5")]
    stride: u64,
    #[prost(message, optional, tag = "6")]
    holder: Option<WirePlace>,
}

/// Data for packing a tile, in addition to its sums.
#[derive(Clone, Debug)]
pub struct Packing {
    /// The parameters of sums and keys.
    pub params: Parameters,
    /// The table's shape.
    pub layout: Layout,
    /// The evaluation keys.
    pub keys: BlobPlace,
    /// The switching keys of a sole holder. Those of a roster are among the evaluation keys.
    pub holder: Option<BlobPlace>,
}

/// A task for an executor.
#[derive(Clone, Debug)]
pub struct Order {
    /// The parameters of table and keys.
    pub params: Parameters,
    /// Some tiles over a band of record chunks.
    pub task: TileTask,
    /// The evaluation keys.
    pub keys: BlobPlace,
    /// The switching keys of a sole holder. Those of a roster are among the evaluation keys.
    pub holder: Option<BlobPlace>,
    /// The sections of the table.
    pub sections: Vec<Section>,
    /// The objects of the task's columns over its band: column by column, each over all chunks.
    pub objects: Vec<BlobPlace>,
    /// Approximate memory of the task in bytes.
    pub memory: usize,
}

fn refused(reason: impl std::fmt::Display) -> DataFusionError {
    DataFusionError::Execution(format!("an order is invalid: {reason}"))
}

impl From<&BlobPlace> for WirePlace {
    fn from(place: &BlobPlace) -> Self {
        Self {
            name: place.name.clone(),
            digest: place.digest.to_vec(),
        }
    }
}

impl TryFrom<WirePlace> for BlobPlace {
    type Error = DataFusionError;

    fn try_from(place: WirePlace) -> Result<Self> {
        let digest = place.digest.try_into();
        Ok(Self {
            name: place.name,
            digest: digest.map_err(|_| refused("a digest has the wrong length"))?,
        })
    }
}

impl From<&Section> for WireSection {
    fn from(section: &Section) -> Self {
        Self {
            end: section.chunks.end as u64,
            key: match section.key {
                ProductKey::Upload(UploadKeyId(id)) => id.to_vec(),
                ProductKey::Joint => Vec::new(),
            },
        }
    }
}

/// Decodes the sections of a table with this number of record chunks.
fn sections(wire: Vec<WireSection>, chunks: usize) -> Result<Vec<Section>> {
    let mut start = 0;
    let mut sections = Vec::with_capacity(wire.len());
    for section in wire {
        let end = usize::try_from(section.end).map_err(refused)?;
        let key = match section.key.as_slice() {
            [] => ProductKey::Joint,
            id => {
                let id = id.try_into();
                let length = "an upload key's name has the wrong length";
                ProductKey::Upload(UploadKeyId(id.map_err(|_| refused(length))?))
            }
        };
        if end <= start {
            return Err(refused("the sections do not follow each other"));
        }
        let chunks = start..end;
        sections.push(Section { chunks, key });
        start = end;
    }
    if start == chunks {
        Ok(sections)
    } else {
        Err(refused("the sections do not cover the table"))
    }
}

impl Order {
    /// Creates the order for a task over a table whose objects other machines can read.
    ///
    /// # Errors
    /// [`fhaim_he::Error::Unavailable`] for a table that is only in memory.
    pub fn new(
        table: &dyn Columns,
        keys: &BlobPlace,
        task: &TileTask,
        memory: usize,
    ) -> fhaim_he::Result<Self> {
        let chunks = task.band();
        let columns = task.columns().into_iter();
        let named = columns.flat_map(|column| chunks.clone().map(move |chunk| (column, chunk)));
        let place = |(column, chunk)| {
            let place = table.place(column, chunk);
            place.ok_or_else(|| {
                let reason = format!("column {column}, chunk {chunk} is only in memory");
                fhaim_he::Error::Unavailable(reason)
            })
        };
        Ok(Self {
            params: table.params().clone(),
            task: task.clone(),
            keys: keys.clone(),
            holder: table.switch_keys_place(),
            sections: table.sections(),
            objects: named.map(place).collect::<fhaim_he::Result<_>>()?,
            memory,
        })
    }

    /// Encodes the order.
    ///
    /// # Errors
    /// Those of [`TileTask::to_bytes`].
    pub fn to_bytes(&self) -> fhaim_he::Result<Vec<u8>> {
        let wire = WireOrder {
            task: self.task.to_bytes(&self.params)?,
            shares: self.params.shares() as u32,
            keys: Some((&self.keys).into()),
            objects: self.objects.iter().map(WirePlace::from).collect(),
            memory: self.memory as u64,
            holder: self.holder.as_ref().map(WirePlace::from),
            sections: self.sections.iter().map(WireSection::from).collect(),
        };
        Ok(wire.encode_to_vec())
    }

    /// Decodes an order.
    ///
    /// # Errors
    /// [`DataFusionError::Execution`] with the first rule that the bytes break.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wire = WireOrder::decode(bytes).map_err(refused)?;
        let set: ParameterSet = fhaim_he::parameter_set(&wire.task).map_err(refused)?;
        let params = Parameters::shared(set).and_then(|p| p.with_shares(wire.shares as usize));
        let params = params.map_err(refused)?;
        let task = TileTask::from_bytes(&params, &wire.task).map_err(refused)?;
        let objects: Result<Vec<BlobPlace>> =
            wire.objects.into_iter().map(BlobPlace::try_from).collect();
        let objects = objects?;
        let named = task.columns().len().checked_mul(task.band().len());
        if named != Some(objects.len()) {
            return Err(refused("the number of objects is not that of the task"));
        }
        let keys = wire
            .keys
            .ok_or_else(|| refused("the evaluation keys are missing"))?;
        Ok(Self {
            sections: sections(wire.sections, task.layout().chunks())?,
            params,
            task,
            keys: keys.try_into()?,
            holder: wire.holder.map(BlobPlace::try_from).transpose()?,
            objects,
            memory: usize::try_from(wire.memory).map_err(refused)?,
        })
    }

    /// Returns the data for packing the sums of the task's tiles.
    pub fn packing(&self) -> Packing {
        Packing {
            params: self.params.clone(),
            layout: self.task.layout(),
            keys: self.keys.clone(),
            holder: self.holder.clone(),
        }
    }

    /// Returns the objects of each column of the table, over the chunks of the band.
    pub(crate) fn by_column(&self) -> impl Iterator<Item = (usize, &[BlobPlace])> {
        let chunks = self.task.band().len().max(1);
        let columns = self.task.columns().into_iter();
        columns.zip(self.objects.chunks(chunks))
    }

    /// Puts the order into an [`Arc`].
    pub(crate) fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }
}

impl Packing {
    /// Encodes the packing.
    pub fn to_bytes(&self) -> Vec<u8> {
        let wire = WirePacking {
            set: self.params.set().id.into(),
            shares: self.params.shares() as u32,
            keys: Some((&self.keys).into()),
            chunks: self.layout.chunks() as u64,
            stride: self.layout.stride() as u64,
            holder: self.holder.as_ref().map(WirePlace::from),
        };
        wire.encode_to_vec()
    }

    /// Decodes a packing.
    ///
    /// # Errors
    /// [`DataFusionError::Execution`] with the first rule that the bytes break.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wire = WirePacking::decode(bytes).map_err(refused)?;
        let set = u8::try_from(wire.set).ok().and_then(ParameterSet::by_id);
        let set = set.ok_or_else(|| refused("unknown parameters"))?;
        let params = Parameters::shared(set).and_then(|p| p.with_shares(wire.shares as usize));
        let layout = Layout::from_parts(
            usize::try_from(wire.chunks).map_err(refused)?,
            usize::try_from(wire.stride).map_err(refused)?,
        );
        let keys = wire
            .keys
            .ok_or_else(|| refused("the evaluation keys are missing"))?;
        Ok(Self {
            params: params.map_err(refused)?,
            layout: layout.map_err(refused)?,
            keys: keys.try_into()?,
            holder: wire.holder.map(BlobPlace::try_from).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_decoded_and_must_cover_the_table() {
        let id = ProductKey::Upload(UploadKeyId([7; 16]));
        let section = |chunks, key| Section { chunks, key };
        let all = [section(0..2, id), section(2..5, ProductKey::Joint)];
        let wire: Vec<WireSection> = all.iter().map(WireSection::from).collect();
        assert_eq!(sections(wire.clone(), 5).unwrap(), all);
        let [first, second] = wire.as_slice() else {
            panic!("there must be two sections");
        };
        let short = WireSection {
            key: vec![7; 15],
            ..first.clone()
        };
        for (wire, chunks) in [
            (vec![], 5),
            (vec![first.clone()], 5),
            (vec![second.clone(), first.clone()], 2),
            (vec![first.clone(), first.clone()], 2),
            (vec![short, second.clone()], 5),
            (wire, 6),
        ] {
            let refused = sections(wire, chunks).unwrap_err().to_string();
            assert!(refused.contains("an order is invalid"), "{refused}");
        }
    }
}
