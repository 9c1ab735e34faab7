//! The journal of a run: every batch of releases is added to the usage history and written to disk before the mechanism
//! sees it, so that a run that is interrupted loses nothing that was paid for.
//!
//! A batch takes this path. The source answers. The history gets the cost of the run up to this batch. The releases
//! file is replaced by one that has the batch too, and is synced. The history learns that the file is in this state.
//! Then the mechanism gets the answers. If the program ends before the file is replaced, the answers are lost: they were
//! in its memory only, and nothing depends on them. The run then continues without them, and asks for the batch again
//! with new noise. The history has its cost already, and counts it once.
//!
//! The history knows the states in which the file may be: two while it is replaced, and otherwise one. An older copy of
//! the file is refused: the run would release batches again, with new noise, whose first answers others may have.

use std::{
    cell::Cell,
    fs::File,
    path::{Path, PathBuf},
};

use fhaim_dp::Rho;
use fhaim_files::{
    is_regular_output,
    memory::{self, KnownRecords, RunJournal, Use},
    note, rename_all, shown_path,
};
use fhaim_release::{MechanismJob, Phase, ReleaseRequest, ReleaseSource, SourceError};
use fhaim_synth::Release;
use uuid::Uuid;

use super::{
    outputs::OutputPaths,
    releases_file::{
        Beginning, Found, Header, ReleasesFile, RequestForm, StoredRelease, digest, lock,
    },
};
use crate::{
    error::Error,
    output::{Existing, StagedFile},
    spending::spending,
};

/// The releases of a run, in memory and on disk.
pub struct Journal {
    content: ReleasesFile,
    /// The file; `None` for a run in memory only, which cannot continue.
    place: Option<Place>,
    /// Output of the run, for the history.
    out: PathBuf,
    known: Option<KnownRecords>,
}

/// The file on disk.
#[derive(Debug)]
struct Place {
    paths: OutputPaths,
    /// SHA-256 of the file, if it exists.
    state: Option<String>,
    /// The locked file.
    lock: Option<File>,
    /// Whether the run replaces the files of another run.
    replaces: bool,
    /// Number of releases in the file.
    releases: usize,
}

impl Journal {
    /// Creates the journal of a run in memory.
    pub fn in_memory(request: RequestForm, budget: Rho, out: PathBuf) -> Self {
        Self {
            content: ReleasesFile {
                header: Header::new(Uuid::new_v4(), request, budget),
                releases: Vec::new(),
            },
            place: None,
            out,
            known: None,
        }
    }

    /// Creates the journal of a run with a releases file.
    ///
    /// # Errors
    /// [`Error::Content`] if the file has releases of another request.
    pub fn with_file(
        request: RequestForm,
        budget: Rho,
        paths: OutputPaths,
        beginning: Beginning,
    ) -> Result<Self, Error> {
        let mut journal = Self::in_memory(request, budget, paths.table.clone());
        let mut place = Place {
            paths,
            state: None,
            lock: None,
            replaces: false,
            releases: 0,
        };
        match beginning {
            Beginning::New => {}
            Beginning::Replacing(lock) => {
                place.replaces = true;
                place.lock = lock;
            }
            Beginning::Found(found) => {
                let request = &journal.content.header.request;
                match found.file.check_request(&place.paths.releases, request) {
                    Ok(()) if is_new_run(&found) => {}
                    Ok(()) => {
                        place.releases = found.file.releases.len();
                        journal.content = found.file;
                    }
                    // A file without releases costs nothing.
                    Err(_) if found.file.releases.is_empty() => {}
                    Err(error) => return Err(error),
                }
                place.state = Some(found.state);
                place.lock = Some(found.lock);
            }
        }
        journal.place = Some(place);
        Ok(journal)
    }

    /// The records that the run uses, if the history could be read.
    pub fn known(&self) -> Option<&KnownRecords> {
        self.known.as_ref()
    }

    /// Returns the path of the releases file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        let place = self.place.as_ref();
        place.map(|place| place.paths.releases.as_path())
    }

    /// Returns the path of the model of a finished run, if it exists.
    ///
    /// # Errors
    /// [`Error::Content`] if the file is not the model that the run wrote, such as that of a run over other records;
    /// [`Error::Read`].
    pub fn saved_model(&self) -> Result<Option<&Path>, Error> {
        let path = self.place.as_ref().map(|place| place.paths.model.as_path());
        let is_saved = |path: &&Path| is_regular_output(path) && path.exists();
        let Some(path) = path.filter(|_| self.is_finished()).filter(is_saved) else {
            return Ok(None);
        };
        let content = std::fs::read(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        match &self.content.header.model_sha256 {
            Some(known) if *known != digest(&content) => Err(Error::Content {
                path: path.to_owned(),
                problem: "it is damaged, or is not the model of this run: restore it, or move it away, and it is made \
                          again from the releases (except with aim and mst)"
                    .to_owned(),
            }),
            _ => Ok(Some(path)),
        }
    }

    /// Returns the identifier of the run.
    pub fn run(&self) -> Uuid {
        self.content.header.run
    }

    /// Returns the releases so far.
    pub fn releases(&self) -> &[StoredRelease] {
        &self.content.releases
    }

    /// Returns the cost of the releases so far.
    pub fn spent(&self) -> Rho {
        self.content.header.spent
    }

    /// Whether all releases of the run were made.
    pub fn is_finished(&self) -> bool {
        self.content.header.finished
    }

    /// Returns the text of the releases file.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn text(&self) -> Result<String, Error> {
        self.content.text()
    }

    /// Begins or continues the run over records that were looked up.
    ///
    /// # Errors
    /// [`Error::Content`] if the file is not as the history knows it, or the records are others; [`Error::Files`].
    pub fn start(&mut self, known: Option<KnownRecords>) -> Result<(), Error> {
        self.known = known;
        let Some(place) = &self.place else {
            return Ok(());
        };
        if !self.content.releases.is_empty() {
            self.check_history(place)?;
            note(format_args!(
                "{}: the run continues after its {} releases, which cost nothing more",
                shown_path(&place.paths.releases),
                self.content.releases.len()
            ));
            return Ok(());
        }
        if place.replaces {
            place.paths.remove_results()?;
        }
        self.leave_other_run()?;
        let text = self.text()?;
        self.write(&text)
    }

    /// Begins a new run if the history has the run of a file without releases over other records.
    fn leave_other_run(&mut self) -> Result<(), Error> {
        let known = self.known.as_ref().map(|known| known.run(self.run()));
        if let Some(run) = known.transpose()?.flatten()
            && !run.has_these_records
        {
            self.content.header.run = Uuid::new_v4();
        }
        Ok(())
    }

    fn check_history(&self, place: &Place) -> Result<(), Error> {
        let refuse = |problem: &str| Error::Content {
            path: place.paths.releases.clone(),
            problem: format!("{problem}, choose another --out, or start a new run with --force"),
        };
        let run = match &self.known {
            Some(known) => known.run(self.run())?,
            None => None,
        };
        let run = run.ok_or_else(|| {
            refuse(
                "the history of used records on this machine does not have this run: continue it where it began",
            )
        })?;
        if !run.has_these_records {
            return Err(refuse(
                "its releases are of other records: name the table of that run",
            ));
        }
        match &place.state {
            Some(state) if run.journal.states.contains(state) => Ok(()),
            _ => Err(refuse(
                "it was changed, or is an older copy: restore the file that the run wrote last",
            )),
        }
    }

    /// Returns the answers to requests that were answered before.
    fn answers(&self, requests: &[ReleaseRequest]) -> Result<Option<Vec<Vec<i64>>>, Error> {
        let first = requests
            .first()
            .map_or(0, |request| request.number as usize);
        let Some(stored) = self
            .content
            .releases
            .get(first..)
            .filter(|rest| !rest.is_empty())
        else {
            return Ok(None);
        };
        let are_equal = requests.len() <= stored.len()
            && requests.iter().zip(stored).all(|(a, b)| *a == b.request);
        if are_equal {
            let values = stored
                .iter()
                .take(requests.len())
                .map(|release| release.values.clone());
            return Ok(Some(values.collect()));
        }
        Err(self.diverged(first))
    }

    /// The error for a release that the mechanism asks for, and the file does not have.
    fn diverged(&self, number: usize) -> Error {
        let place = self.place.as_ref();
        Error::Content {
            path: place.map_or_else(PathBuf::new, |place| place.paths.releases.clone()),
            problem: format!(
                "release {number} is not the one that this program asks for: continue with {}, or start a new run with \
                 --force",
                self.content.header.program
            ),
        }
    }

    /// Adds a batch.
    fn add(&mut self, batch: impl IntoIterator<Item = StoredRelease>) -> Result<(), Error> {
        for release in batch {
            let spent = self.spent().checked_add(release.rho);
            let spent = spent.ok_or(fhaim_release::Error::Overflow);
            self.content.header.spent = spent.map_err(fhaim_synth::Error::from)?;
            self.content.releases.push(release);
        }
        match self.place {
            Some(_) => self.store(),
            None => Ok(()),
        }
    }

    /// Adds the cost so far to the history, writes the file, and records that it was written.
    fn store(&mut self) -> Result<(), Error> {
        let text = self.text()?;
        self.debit(&text)?;
        self.write(&text)?;
        self.confirm()
    }

    /// Adds the cost so far to the history before the file is replaced by this text.
    fn debit(&self, text: &str) -> Result<(), Error> {
        let state = self.place.as_ref().and_then(|place| place.state.clone());
        let next = digest(text.as_bytes());
        self.remember_states(state.into_iter().chain([next]).collect())
    }

    /// Records that the file was replaced, so that a copy of the file before is refused.
    fn confirm(&self) -> Result<(), Error> {
        let state = self.place.as_ref().and_then(|place| place.state.clone());
        self.remember_states(state.into_iter().collect())
    }

    /// Records the cost so far, and the states in which the file may be.
    fn remember_states(&self, states: Vec<String>) -> Result<(), Error> {
        let (Some(known), Some(_)) = (&self.known, &self.place) else {
            return Ok(());
        };
        let journal = RunJournal {
            id: self.run(),
            states,
        };
        Ok(known.remember_run(&self.out, journal, &spending(self.spent()))?)
    }

    fn write(&mut self, text: &str) -> Result<(), Error> {
        let Some(place) = &mut self.place else {
            return Ok(());
        };
        // After the first write, the file is the run's own.
        let existing = match place.state.is_some() || place.replaces {
            true => Existing::Replace,
            false => Existing::Refuse,
        };
        let mut file = StagedFile::create(&place.paths.releases, existing)?;
        file.write_bytes(text.as_bytes())?;
        let handle = file.handle()?;
        // Nobody else can have a file without a name.
        let _ = lock(&handle);
        file.commit()?;
        place.lock = Some(handle);
        place.state = Some(digest(text.as_bytes()));
        place.releases = self.content.releases.len();
        Ok(())
    }

    /// Records all releases of the run and their cost, and then gives the model's file its name.
    ///
    /// The model is on disk before the file says that the run is finished. A mechanism that cannot fit it again from the
    /// releases therefore loses nothing to a full disk.
    ///
    /// # Errors
    /// Errors of the files and the history.
    pub fn finish(
        &mut self,
        releases: &[Release],
        spent: Rho,
        model: Option<(StagedFile, Vec<u8>)>,
    ) -> Result<(), Error> {
        let was_finished = self.content.header.finished;
        let releases = releases.iter().map(StoredRelease::of);
        self.content.releases = releases.collect::<Result<_, _>>()?;
        self.content.header.spent = spent;
        self.content.header.finished = true;
        let digest_before = self.content.header.model_sha256.clone();
        if let Some((_, content)) = &model {
            self.content.header.model_sha256 = Some(digest(content));
        }
        // Another version of the program may make another model from the same releases.
        let is_repeated = was_finished && self.content.header.model_sha256 == digest_before;
        if self.place.is_none() {
            return self.remember();
        }
        let text = self.text()?;
        if !is_repeated {
            self.debit(&text)?;
        }
        let model = match model {
            Some((mut file, content)) => {
                file.write_bytes(&content)?;
                Some(file.finish()?)
            }
            None => None,
        };
        if !is_repeated {
            self.write(&text)?;
            self.confirm()?;
        }
        Ok(rename_all(model.into_iter().collect())?)
    }

    fn remember(&self) -> Result<(), Error> {
        let Some(known) = &self.known else {
            return Ok(());
        };
        let used_for = Use::Run {
            out: self.out.display().to_string(),
            journal: None,
        };
        Ok(known.remember(&used_for, spending(self.spent()))?)
    }

    /// Reports how a failed run continues, if it made releases.
    pub fn say_how_to_continue(&self) {
        let place = self.place.as_ref();
        let Some(place) = place.filter(|place| place.releases > 0) else {
            return;
        };
        let without = match place.replaces {
            true => ", without --force,",
            false => "",
        };
        note(format_args!(
            "{} has the releases of this run so far. Run the same command again{without} to continue: it does not pay \
             for them again",
            shown_path(&place.paths.releases)
        ));
    }
}

/// Whether a file without releases begins a new run: the history does not have it as the state of its run, so that it is
/// a copy, and releases that others may have would be made again under the same identifier.
fn is_new_run(found: &Found) -> bool {
    // A history that cannot be read is reported when the records are looked up.
    found.file.releases.is_empty()
        && match memory::states_of_run(found.file.header.run) {
            Ok(Some(states)) => !states.contains(&found.state),
            Ok(None) => false,
            Err(_) => true,
        }
}

/// A source that answers from the journal, and asks another source for the rest.
///
/// The other source begins with release 0: it has new noise, and knows nothing of the earlier releases.
pub struct JournalledSource<'j, S> {
    journal: &'j mut Journal,
    job: &'j MechanismJob,
    phase: &'j Cell<Phase>,
    /// The other source; `None` for a run that is finished.
    source: Option<S>,
    /// Number of the first release that the other source answers.
    first: u32,
    /// The error for which a batch has no answers.
    failure: Option<Error>,
}

impl<'j, S: ReleaseSource> JournalledSource<'j, S> {
    /// Creates a source. `phase` is the current phase of the run.
    pub fn new(
        journal: &'j mut Journal,
        job: &'j MechanismJob,
        phase: &'j Cell<Phase>,
        source: Option<S>,
    ) -> Self {
        Self {
            first: journal.releases().len() as u32,
            journal,
            job,
            phase,
            source,
            failure: None,
        }
    }

    /// Returns the other source.
    pub fn into_source(self) -> Option<S> {
        self.source
    }

    /// Returns the error of a run: the one for which this source gave no answers, or else `error`.
    pub fn failed(&mut self, error: fhaim_synth::Error) -> Error {
        self.failure.take().unwrap_or_else(|| error.into())
    }

    fn answer(&mut self, requests: &[ReleaseRequest]) -> Result<Vec<Vec<i64>>, Error> {
        if let Some(answers) = self.journal.answers(requests)? {
            return Ok(answers);
        }
        let Some(source) = &mut self.source else {
            return Err(self.journal.diverged(self.journal.releases().len()));
        };
        let shift = |request: &ReleaseRequest| ReleaseRequest {
            number: request.number.saturating_sub(self.first),
            ..request.clone()
        };
        let shifted: Vec<ReleaseRequest> = requests.iter().map(shift).collect();
        let answers = source.release(&shifted);
        let answers = answers.map_err(fhaim_synth::Error::from)?;
        let phase = serde_json::to_value(self.phase.get()).unwrap_or_default();
        let store = |(request, values): (&ReleaseRequest, &Vec<i64>)| -> Result<_, Error> {
            Ok(StoredRelease {
                request: request.clone(),
                phase: phase.clone(),
                rho: request.cost(self.job).map_err(fhaim_synth::Error::from)?,
                values: values.clone(),
            })
        };
        let batch = requests.iter().zip(&answers).map(store);
        let batch = batch.collect::<Result<Vec<_>, _>>()?;
        self.journal.add(batch)?;
        Ok(answers)
    }
}

impl<S: ReleaseSource> ReleaseSource for JournalledSource<'_, S> {
    fn release(&mut self, requests: &[ReleaseRequest]) -> Result<Vec<Vec<i64>>, SourceError> {
        self.answer(requests).map_err(|error| {
            let source = SourceError::backend(error.to_string());
            self.failure = Some(error);
            source
        })
    }
}
