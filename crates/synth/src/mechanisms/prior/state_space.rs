//! Matérn process of order 3/2 on equally spaced places, with products and factors in linear time.
//!
//! The process and its slope form a Markov chain of two numbers per place (Hartikainen and Särkkä
//! 2010; Särkkä and Solin 2019, section 12.3). One pass over the places replaces a product or a
//! triangular solve with the dense covariance.

/// The process and its scaled slope at one place.
type State = [f64; 2];

/// A stationary Matérn process of order 3/2.
///
/// The slope is scaled so that the covariance of the state is `variance` times the identity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    variance: f64,
    /// Matrix A: the mean of a state is A times the previous state.
    transition: [State; 2],
}

impl Process {
    /// Creates a process with this standard deviation and length; `spacing` is the distance between
    /// neighbouring places.
    pub(super) fn new(deviation: f64, length: f64, spacing: f64) -> Self {
        let distance = 3f64.sqrt() * spacing / length;
        let decay = (-distance).exp();
        let transition = [
            [decay * (1.0 + distance), decay * distance],
            [-decay * distance, decay * (1.0 - distance)],
        ];
        Self {
            variance: deviation * deviation,
            transition,
        }
    }

    /// Returns A times `state`.
    fn forward(&self, state: State) -> State {
        self.transition
            .map(|row| row[0] * state[0] + row[1] * state[1])
    }

    /// Returns the transpose of A times `state`.
    fn backward(&self, state: State) -> State {
        let [first, second] = self.transition;
        [0, 1].map(|i| first[i] * state[0] + second[i] * state[1])
    }

    /// Adds M x to `sum`, where M is the covariance of the process at the places of `x`.
    pub(super) fn add_product(&self, x: &[f64], sum: &mut [f64]) {
        let mut state = [0.0; 2];
        for (sum, x) in sum.iter_mut().zip(x) {
            state = self.forward(state);
            state[0] += x;
            *sum += self.variance * state[0];
        }
        state = [0.0; 2];
        for (sum, x) in sum.iter_mut().zip(x).rev() {
            state = self.forward(state);
            *sum += self.variance * state[0];
            state[0] += x;
        }
    }
}

/// Factors of (v I + M + Q^-1)^-1 = N, where Q is diagonal: N = (L^-1)' D L^-1.
///
/// v is the variance of each place by itself and M the covariance of the process (0 without a
/// process). L is lower triangular with a diagonal of ones; D is diagonal. Entries of Q may be 0.
#[derive(Debug)]
pub(super) struct Factor {
    process: Option<Process>,
    rows: Vec<Row>,
}

/// The values of one place that a triangular solve needs.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Diagonal entry of D.
    precision: f64,
    /// 1 plus the product of the entry of Q and the variance given the previous places.
    pivot: f64,
    /// Effect of the place's solution on the state.
    gain: State,
}

impl Factor {
    /// Factorises N for the entries of Q, `precisions`; `None` if a pivot is not positive and
    /// finite.
    pub(super) fn new(process: Option<Process>, variance: f64, precisions: &[f64]) -> Option<Self> {
        // Covariance of the state given the previous places, minus `process.variance` I.
        let mut known = [[0.0; 2]; 2];
        let row = |precision: &f64| {
            let covariance = match &process {
                Some(process) => {
                    known = known.map(|row| process.forward(row));
                    known = transpose(transpose(known).map(|column| process.forward(column)));
                    [process.variance + known[0][0], known[1][0]]
                }
                None => [0.0; 2],
            };
            let pivot = 1.0 + precision * (variance + covariance[0]);
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            let gain = covariance.map(|covariance| covariance * precision / pivot);
            known = [0, 1].map(|i| [0, 1].map(|j| known[i][j] - gain[i] * covariance[j]));
            Some(Row {
                precision: precision / pivot,
                pivot,
                gain,
            })
        };
        let rows = precisions.iter().map(row).collect::<Option<_>>()?;
        Some(Self { process, rows })
    }

    /// Returns L^-1 x.
    pub(super) fn solve_lower(&self, x: &[f64]) -> Vec<f64> {
        let Some(process) = self.process else {
            return x.to_vec();
        };
        let mut state = [0.0; 2];
        let solve = |(row, x): (&Row, &f64)| {
            state = process.forward(state);
            let y = x - state[0];
            state = [0, 1].map(|i| state[i] + row.gain[i] * y);
            y
        };
        self.rows.iter().zip(x).map(solve).collect()
    }

    /// Returns (L^-1)' D x.
    pub(super) fn solve_upper(&self, x: &[f64]) -> Vec<f64> {
        let cells = self.rows.iter().zip(x);
        let mut y: Vec<f64> = cells.map(|(row, x)| row.precision * x).collect();
        let Some(process) = self.process else {
            return y;
        };
        let mut state = [0.0; 2];
        for (row, y) in self.rows.iter().zip(&mut y).rev() {
            *y += row.gain[0] * state[0] + row.gain[1] * state[1];
            state[0] -= *y;
            state = process.backward(state);
        }
        y
    }

    /// Returns x' D y.
    pub(super) fn product(&self, x: &[f64], y: &[f64]) -> f64 {
        let cells = self.rows.iter().zip(x.iter().zip(y));
        cells.map(|(row, (x, y))| row.precision * x * y).sum()
    }

    /// Returns the logarithm of the determinant of I + (v I + M) Q.
    pub(super) fn log_determinant(&self) -> f64 {
        self.rows.iter().map(|row| row.pivot.ln()).sum()
    }
}

fn transpose([first, second]: [State; 2]) -> [State; 2] {
    [[first[0], second[0]], [first[1], second[1]]]
}
