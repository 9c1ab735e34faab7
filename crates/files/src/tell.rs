//! Messages on standard error, wrapped between words on a terminal.

use std::{
    borrow::Cow,
    fmt::Display,
    io::{IsTerminal, Write, stderr},
};

use terminal_size::{Width, terminal_size_of};

/// Number of spaces by which the continuation of a line is indented further than the line.
const HANGING: usize = 2;

/// Fewest columns of a terminal for which messages are wrapped.
const NARROWEST: usize = 40;

/// Prints a message to standard error. On a terminal, long lines are wrapped between words.
pub fn tell(text: &str) {
    tell_line(for_terminal(text));
}

/// Prints a line to standard error as it is.
///
/// Nobody reads a message if standard error is closed. The command continues.
pub fn tell_line(text: impl Display) {
    let _ = writeln!(stderr(), "{text}");
}

/// Like [`tell_line`], without the end of the line.
pub fn tell_part(text: impl Display) {
    let mut out = stderr();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Wraps the lines of a text if standard error is a terminal.
pub(crate) fn for_terminal(text: &str) -> Cow<'_, str> {
    match width() {
        Some(width) => Cow::Owned(wrapped(text, width)),
        None => Cow::Borrowed(text),
    }
}

/// Returns the number of columns of the terminal, if standard error is one.
fn width() -> Option<usize> {
    if !stderr().is_terminal() {
        return None;
    }
    let (Width(width), _) = terminal_size_of(stderr())?;
    Some(usize::from(width)).filter(|&width| width >= NARROWEST)
}

/// Wraps each line of a text between words. A word that is longer than the width stays whole.
fn wrapped(text: &str, width: usize) -> String {
    let lines = text.lines().map(|line| wrapped_line(line, width));
    lines.collect::<Vec<String>>().join("\n")
}

fn wrapped_line(line: &str, width: usize) -> String {
    // Columns may be aligned with several spaces, which a wrapped line would lose.
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let mut wrapped = " ".repeat(indent);
    let mut used = indent;
    for (number, word) in line.split_whitespace().enumerate() {
        let length = word.chars().count();
        if number > 0 && used + 1 + length > width {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent + HANGING));
            used = indent + HANGING;
        } else if number > 0 {
            wrapped.push(' ');
            used += 1;
        }
        wrapped.push_str(word);
        used += length;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_between_words_and_indented() {
        let text =
            "note: these records were used before\n  a run of fhaim, into synthetic.csv\nshort";
        assert_eq!(
            wrapped(text, 20),
            "note: these records\n  were used before\n  a run of fhaim,\n    into\n    synthetic.csv\nshort"
        );
    }

    #[test]
    fn word_that_is_longer_than_the_width_stays_whole() {
        assert_eq!(
            wrapped("at /a/very/long/path", 8),
            "at\n  /a/very/long/path"
        );
    }
}
