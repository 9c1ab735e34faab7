#![allow(clippy::unwrap_used, reason = "a test's own files")]

use super::*;
use std::fs;

fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

/// Starts a file with a temporary name, as on systems without unnamed files.
fn named(path: &Path) -> StagedFile {
    let file = temporary(Readers::Usual).tempfile_in(folder(path)).unwrap();
    let (file, name) = file.into_parts();
    let file = Sink::Open(file);
    StagedFile::new(
        path,
        Existing::Replace,
        file,
        Place::Temporary(name, path.to_owned()),
    )
}

#[test]
fn file_appears_complete_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.csv");
    let starts: [fn(&Path) -> StagedFile; 2] = [
        |path| StagedFile::create(path, Existing::Replace).unwrap(),
        named,
    ];
    for start in starts {
        let mut dropped = start(&path);
        dropped.write_bytes(b"half").unwrap();
        assert!(!path.exists());
        drop(dropped);
        assert!(names(folder.path()).is_empty());

        fs::write(&path, "old").unwrap();
        let mut staged = start(&path);
        staged.write_bytes(b"new").unwrap();
        staged.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        staged.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["out.csv"]);
        fs::remove_file(&path).unwrap();
    }
}

/// Without a name, the file disappears when the program ends for any reason.
#[cfg(target_os = "linux")]
#[test]
fn incomplete_file_has_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut staged = StagedFile::create(&folder.path().join("out.csv"), Existing::Replace).unwrap();
    staged.write_bytes(b"half").unwrap();
    staged.flush().unwrap();
    assert!(names(folder.path()).is_empty());
}

/// No file gets its name before all are complete: if one of them fails, none appears.
#[cfg(target_os = "linux")]
#[test]
fn failed_commit_writes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let staged = |name: &str| {
        let mut file = StagedFile::create(&at(name), Existing::Replace).unwrap();
        file.write_bytes(name.as_bytes()).unwrap();
        file
    };
    let mut full = StagedFile::create(Path::new("/dev/full"), Existing::Replace).unwrap();
    // The bytes stay in the buffer until the commit.
    full.write_bytes(b"more").unwrap();
    assert!(matches!(
        commit_all([staged("a"), staged("b"), full]),
        Err(Error::Write { .. })
    ));
    assert!(names(folder.path()).is_empty());
    commit_all([staged("a"), staged("b")]).unwrap();
    assert_eq!(names(folder.path()), ["a", "b"]);
    assert_eq!(fs::read(at("b")).unwrap(), b"b");
}

/// Finished files are closed, so that only one of many files is open at a time.
#[cfg(target_os = "linux")]
#[test]
fn finished_files_are_closed_before_they_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let streams = fs::read_dir("/proc/self/fd").unwrap();
        let leads = |stream: fs::DirEntry| fs::read_link(stream.path()).ok();
        let leads = streams.filter_map(|stream| leads(stream.unwrap()));
        leads.filter(|path| path.starts_with(folder.path())).count()
    };
    let whole = |number: u32| {
        let mut file =
            StagedFile::create(&folder.path().join(number.to_string()), Existing::Replace).unwrap();
        file.write_bytes(b"part").unwrap();
        assert_eq!(open(), 1);
        file.finish().unwrap()
    };
    let parts: Vec<Whole> = (0..20).map(whole).collect();
    assert_eq!(open(), 0);
    let hidden = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(".fhaim-");
    assert!(names(folder.path()).iter().all(hidden));
    rename_all(parts).unwrap();
    assert!(!names(folder.path()).iter().any(hidden));
    assert_eq!(names(folder.path()).len(), 20);
}

#[test]
fn invalid_output_folder_is_rejected_at_creation() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/out.csv");
    let refused = StagedFile::create(&missing, Existing::Replace).unwrap_err();
    assert!(matches!(refused, Error::NoFolder { .. }), "{refused}");
    let refused = StagedFile::create(folder.path(), Existing::Replace).unwrap_err();
    assert!(matches!(refused, Error::Folder(_)), "{refused}");
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    /// Links remain links, and their target is replaced as a whole. The target may be in another folder, behind several
    /// links, or not exist yet.
    #[test]
    fn links_are_kept_and_their_targets_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("real")).unwrap();
        fs::write(at("real/old.csv"), "old").unwrap();
        let before = fs::metadata(at("real/old.csv")).unwrap().ino();
        for (link, leads_to) in [
            ("one", "real/old.csv"),
            ("two", "one"),
            ("new", "real/new.csv"),
        ] {
            symlink(leads_to, at(link)).unwrap();
        }
        for (link, file) in [("two", "real/old.csv"), ("new", "real/new.csv")] {
            let mut staged = StagedFile::create(&at(link), Existing::Replace).unwrap();
            staged.write_bytes(link.as_bytes()).unwrap();
            staged.commit().unwrap();
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink());
            assert!(!fs::symlink_metadata(at(file)).unwrap().is_symlink());
            assert_eq!(fs::read(at(file)).unwrap(), link.as_bytes());
        }
        assert_ne!(fs::metadata(at("real/old.csv")).unwrap().ino(), before);
        symlink("ring", at("ring")).unwrap();
        assert!(matches!(
            StagedFile::create(&at("ring"), Existing::Replace),
            Err(Error::Write { .. })
        ));
        assert!(matches!(
            {
                symlink("nowhere/x", at("astray")).unwrap();
                StagedFile::create(&at("astray"), Existing::Replace)
            },
            Err(Error::NoFolder { .. })
        ));
    }

    /// Neither a device nor a link to it is replaced.
    #[test]
    fn devices_are_written_to_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("null");
        symlink("/dev/null", &link).unwrap();
        let mut staged = StagedFile::create(&link, Existing::Replace).unwrap();
        staged.write_bytes(b"into the void").unwrap();
        staged.commit().unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("/dev/null"));
        let device = fs::symlink_metadata("/dev/null").unwrap();
        assert!(!device.is_file() && !device.is_symlink());
    }

    /// The reader of a pipe gets the written bytes, and then the end.
    #[test]
    fn pipes_are_written_to_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        self::pipe(&pipe);
        let name = pipe.clone();
        let reader = std::thread::spawn(move || fs::read(name).unwrap());
        let mut staged = StagedFile::create(&pipe, Existing::Replace).unwrap();
        staged.write_bytes(b"records").unwrap();
        staged.commit().unwrap();
        assert_eq!(reader.join().unwrap(), b"records");
        assert!(!fs::symlink_metadata(&pipe).unwrap().is_file());
        assert_eq!(names(folder.path()), ["pipe"]);
    }

    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }

    /// Pipes that are read one after the other, in the order in which they are written, do not deadlock.
    #[test]
    fn pipes_can_be_read_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let pipes = ["one", "two", "empty"].map(at);
        pipes.iter().for_each(|path| pipe(path));
        let (names, unread) = (pipes.clone(), at("unread"));
        pipe(&unread);
        let (told, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let read: Vec<String> = (names.iter())
                .map(|name| fs::read_to_string(name).unwrap())
                .collect();
            told.send(read).unwrap();
        });
        let (done, finished) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let [mut one, mut two, empty] =
                pipes.map(|path| StagedFile::create(&path, Existing::Replace).unwrap());
            one.write_bytes(b"records").unwrap();
            one.end().unwrap();
            two.write_bytes(b"classes").unwrap();
            two.end().unwrap();
            commit_all([one, two, empty]).unwrap();
            // Dropping an abandoned pipe does not wait for a reader.
            let mut given_up = StagedFile::create(&unread, Existing::Replace).unwrap();
            given_up.write_bytes(b"half").unwrap();
            drop(given_up);
            done.send(()).unwrap();
        });
        let long = std::time::Duration::from_secs(20);
        finished.recv_timeout(long).unwrap();
        assert_eq!(
            heard.recv_timeout(long).unwrap(),
            ["records", "classes", ""]
        );
    }

    #[test]
    fn private_file_is_readable_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("share");
        fs::write(&path, "old").unwrap();
        StagedFile::create_private(&path, Existing::Replace)
            .unwrap()
            .commit()
            .unwrap();
        let rights = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(rights & 0o777, 0o600);
        let usual = folder.path().join("usual");
        StagedFile::create(&usual, Existing::Replace)
            .unwrap()
            .commit()
            .unwrap();
        let made = folder.path().join("made");
        fs::write(&made, "").unwrap();
        let rights = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(rights(&usual), rights(&made));
    }
}

/// The error must come early: programs spend privacy budget between the creation of a file and its commit.
#[test]
fn folder_path_is_rejected_at_creation() {
    let folder = tempfile::tempdir().unwrap();
    for name in [".", "new/", "missing/new/"] {
        let refused = StagedFile::create(&folder.path().join(name), Existing::Replace).unwrap_err();
        assert!(matches!(refused, Error::Folder(_)), "{name}: {refused}");
    }
}
