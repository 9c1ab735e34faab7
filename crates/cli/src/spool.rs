//! Stores the holders' uploads of a run in one process in a temporary file without a name.
//!
//! A noise ladder may be larger than memory, and a run reads only a small part of it. The system removes the file when
//! the program ends.

use std::{
    collections::HashMap,
    env,
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
    sync::{Mutex, PoisonError},
};

use fhaim_he::Parameters;
use fhaim_protocol::{
    encryption::{Form, Payload},
    noise::NoiseObjects,
    upload::Object,
};

use crate::error::Error;

/// Uploaded objects, by holder and object.
#[derive(Debug)]
pub struct Spool {
    params: Parameters,
    form: Form,
    file: Mutex<File>,
    places: HashMap<(usize, Object), Place>,
    end: u64,
}

/// Place of an object's bytes in the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    first: u64,
    length: usize,
}

impl Spool {
    /// Creates an empty spool in the system's folder for temporary files.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn new(params: &Parameters, form: Form) -> Result<Self, Error> {
        Ok(Self {
            params: params.clone(),
            form,
            file: Mutex::new(tempfile::tempfile().map_err(not_written)?),
            places: HashMap::new(),
            end: 0,
        })
    }

    /// Writes an object.
    ///
    /// # Errors
    /// [`Error::Write`], for example if the disk is full.
    pub fn put(&mut self, holder: usize, object: Object, payload: &Payload) -> Result<(), Error> {
        let bytes = payload.encode(&self.params);
        let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.end)).map_err(not_written)?;
        file.write_all(&bytes).map_err(not_written)?;
        let place = Place {
            first: self.end,
            length: bytes.len(),
        };
        self.places.insert((holder, object), place);
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Reads an object.
    ///
    /// # Errors
    /// [`fhaim_protocol::Error::Object`] for an object that was not written; [`fhaim_he::Error::Unavailable`] if the
    /// file cannot be read.
    pub fn get(&self, holder: usize, object: Object) -> Result<Payload, fhaim_protocol::Error> {
        let place = self.places.get(&(holder, object));
        let missing = fhaim_protocol::Error::Object("an object is missing");
        let bytes = self.bytes(*place.ok_or(missing)?);
        let bytes = bytes.map_err(|error| fhaim_he::Error::Unavailable(error.to_string()))?;
        self.form.decode(&self.params, object, &bytes)
    }

    fn bytes(&self, place: Place) -> std::io::Result<Vec<u8>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(place.first))?;
        let mut bytes = vec![0; place.length];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

fn not_written(source: std::io::Error) -> Error {
    Error::Write {
        path: env::temp_dir(),
        source,
    }
}

impl NoiseObjects for Spool {
    fn read(
        &self,
        holder: usize,
        objects: &[Object],
    ) -> Result<Vec<Payload>, fhaim_protocol::Error> {
        objects
            .iter()
            .map(|&object| self.get(holder, object))
            .collect()
    }
}
