//! Runs an external program as a mechanism, so that published implementations are measured on the same rows, with the
//! same measures and in the same table as ours. `research/bench/anchor.py` drives some of them.
//!
//! The program is started once for each run. It reads one JSON object from its standard input (see [`Question`]),
//! writes one to its standard output (see [`Answer`]), and ends with status 0.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::thread;

use fhaim_domain::{Clique, Table};
use serde::{Deserialize, Serialize};

use super::trial::TrialSetting;
use crate::error::Error;

/// The largest allowed difference between 1 and the sum of a marginal's shares. Programs may compute in single
/// precision.
const MAX_MISSING_SHARE: f64 = 1e-3;

/// A program, with its name in the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub name: String,
    command: String,
    arguments: Vec<String>,
}

impl FromStr for Program {
    type Err = String;

    /// Parses `NAME=COMMAND ARGUMENT ...`, split at white space.
    fn from_str(text: &str) -> Result<Self, String> {
        let form =
            || "NAME=COMMAND, such as \"swift=python3 research/bench/anchor.py swift\"".to_owned();
        let (name, command) = text.split_once('=').ok_or_else(form)?;
        let mut words = command.split_whitespace().map(str::to_owned);
        let command = words.next().ok_or_else(form)?;
        if name.trim().is_empty() {
            return Err(form());
        }
        Ok(Self {
            name: name.trim().to_owned(),
            command,
            arguments: words.collect(),
        })
    }
}

/// The input of a program.
#[derive(Debug, Serialize)]
struct Question<'a> {
    /// Number of values of each attribute.
    sizes: &'a [usize],
    /// The training rows: a list of codes for each attribute.
    columns: &'a [Vec<u32>],
    /// The pairs of attributes whose marginals are requested.
    pairs: Vec<[usize; 2]>,
    epsilon: f64,
    delta: f64,
    /// The zCDP budget of our mechanisms at this epsilon and delta.
    rho: f64,
    /// Model cap, for programs that support one.
    model_bytes: usize,
    seed: u64,
}

/// The output of a program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    /// Shares of the cells of each pair, in the requested order, row-major.
    pub(super) marginals: Vec<Vec<f64>>,
    /// Synthetic records: a list of codes for each attribute.
    pub(super) columns: Vec<Vec<u32>>,
}

impl Program {
    /// Runs the program on the training rows.
    ///
    /// # Errors
    /// [`Error::Usage`] if the program cannot be started, ends with another status, or has an invalid output.
    pub(super) fn run(
        &self,
        seen: &Table,
        pairs: &[Clique],
        setting: &TrialSetting,
        (rho, seed): (f64, u64),
    ) -> Result<Answer, Error> {
        let sizes = seen.domain().sizes();
        let question = Question {
            sizes,
            columns: seen.columns(),
            pairs: pairs.iter().filter_map(pair).collect(),
            epsilon: setting.epsilon,
            delta: setting.delta,
            rho,
            model_bytes: setting.model_bytes,
            seed,
        };
        let question = serde_json::to_vec(&question)
            .map_err(|error| self.problem(&format!("its input cannot be written: {error}")))?;
        let answer: Answer = serde_json::from_slice(&self.answer(question)?)
            .map_err(|error| self.problem(&format!("its output cannot be read: {error}")))?;
        let cells = pairs
            .iter()
            .map(|pair| (pair.attributes().iter().map(|&a| sizes[a])).product::<usize>());
        let is_marginal = |(cells, shares): (usize, &Vec<f64>)| {
            let sum: f64 = shares.iter().sum();
            shares.len() == cells && (sum - 1.0).abs() <= MAX_MISSING_SHARE
        };
        let all = answer.marginals.len() == pairs.len();
        if !all || !cells.zip(&answer.marginals).all(is_marginal) {
            let problem = "its marginals are not shares of the cells of the requested pairs";
            return Err(self.problem(problem));
        }
        Ok(answer)
    }

    /// Gives the program its input and returns its whole output.
    fn answer(&self, question: Vec<u8>) -> Result<Vec<u8>, Error> {
        let failed = |error: std::io::Error| self.problem(&error.to_string());
        let mut child: Child = Command::new(&self.command)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        // The program may write before it has read everything. A separate thread prevents a deadlock.
        let telling = thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&question)));
        let mut answer = Vec::new();
        let read = stdout.map(|mut stdout| stdout.read_to_end(&mut answer));
        let status = child.wait().map_err(failed)?;
        // A program that ends early causes a broken pipe. Its status is more informative.
        drop(telling.join());
        if !status.success() {
            return Err(self.problem(&format!("it ended with {status}")));
        }
        read.transpose().map_err(failed)?;
        Ok(answer)
    }

    fn problem(&self, problem: &str) -> Error {
        Error::Usage(format!(
            "--program {}: {} failed: {problem}",
            self.name, self.command
        ))
    }
}

/// Returns the attributes of a clique of two.
fn pair(clique: &Clique) -> Option<[usize; 2]> {
    clique.attributes().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::families::Family;

    const SETTING: TrialSetting = TrialSetting {
        epsilon: 1.0,
        delta: 1e-9,
        model_bytes: 1 << 20,
        holders: [1, 1],
        trees: false,
        target_weight: 1,
    };

    fn told(script: &str) -> Result<Answer, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program.sh");
        std::fs::write(&path, script).unwrap();
        let program: Program = format!("p=sh {}", path.display()).parse().unwrap();
        let table = Family::Narrow.table(1).unwrap();
        let pairs = table.domain().pairs();
        let answer = program.run(&table, &pairs[..1], &SETTING, (0.1, 7));
        answer.map_err(|error| error.to_string())
    }

    #[test]
    fn program_is_parsed_as_name_and_command() {
        let program: Program = "swift = python3 anchor.py swift".parse().unwrap();
        assert_eq!(program.name, "swift");
        assert_eq!(program.command, "python3");
        assert_eq!(program.arguments, ["anchor.py", "swift"]);
        for text in ["swift", "swift=", "=python3", " = "] {
            let refused = text.parse::<Program>().unwrap_err();
            assert!(refused.starts_with("NAME=COMMAND"), "{text:?}: {refused}");
        }
    }

    #[test]
    fn program_gets_the_rows_and_its_output_is_read() {
        let sizes = Family::Narrow.table(1).unwrap().domain().sizes().to_vec();
        let cells = sizes[0] * sizes[1];
        let shares = vec![(1.0 / cells as f64).to_string(); cells].join(",");
        // The program answers only if its input contains the seed and the sizes.
        let answer = told(&format!(
            "q=$(cat)\ncase \"$q\" in *'\"sizes\":[{},'*'\"seed\":7'*) \
             echo '{{\"marginals\": [[{shares}]], \"columns\": [[0], [1]]}}';; *) exit 3;; esac",
            sizes[0]
        ));
        let answer = answer.unwrap();
        assert_eq!(answer.columns, [[0], [1]]);
        assert_eq!(answer.marginals[0].len(), cells);
    }

    #[test]
    fn failing_program_is_named_in_the_error() {
        let refused = |script: &str, words: &str| {
            let error = told(script).unwrap_err();
            assert!(
                error.contains("--program p:") && error.contains(words),
                "{error}"
            );
        };
        refused("cat > /dev/null; exit 3", "ended with exit status: 3");
        // This program reads nothing, so the pipe breaks. The error shows its status.
        refused("exit 4", "ended with exit status: 4");
        refused("cat > /dev/null; echo no", "cannot be read");
        let short = "cat > /dev/null; echo '{\"marginals\": [[1.0]], \"columns\": []}'";
        refused(short, "not shares");
        let other: Program = "p=/no/such/program".parse().unwrap();
        let table = Family::Narrow.table(1).unwrap();
        let error = other.run(&table, &[], &SETTING, (0.1, 7)).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
