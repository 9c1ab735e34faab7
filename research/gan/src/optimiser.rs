//! Gradient descent: plain, or with Adam.

/// An optimiser of a network's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimiser {
    /// Plain gradient descent.
    Sgd {
        /// The learning rate.
        rate: f32,
    },
    /// Adam (Kingma and Ba 2015), with a decay rate of 0.999 for the second moments.
    Adam {
        /// The learning rate.
        rate: f32,
        /// beta1, the decay rate of the first moments.
        beta: f32,
    },
}

impl Optimiser {
    /// Adam with the usual setting for GANs: beta1 is one half.
    pub const fn adam(rate: f32) -> Self {
        Self::Adam { rate, beta: 0.5 }
    }

    /// Returns the learning rate.
    pub(crate) const fn rate(self) -> f32 {
        match self {
            Self::Sgd { rate } | Self::Adam { rate, .. } => rate,
        }
    }
}

/// An optimiser with its running means.
#[derive(Clone, Debug)]
pub(crate) struct Descent {
    optimiser: Optimiser,
    steps: i32,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Descent {
    pub(crate) fn new(optimiser: Optimiser, parameters: usize) -> Self {
        let moments = match optimiser {
            Optimiser::Sgd { .. } => 0,
            Optimiser::Adam { .. } => parameters,
        };
        Self {
            optimiser,
            steps: 0,
            first: vec![0.0; moments],
            second: vec![0.0; moments],
        }
    }

    pub(crate) fn step(&mut self, parameters: &mut [f32], gradient: &[f32]) {
        const SQUARE: f32 = 0.999;
        self.steps = self.steps.saturating_add(1);
        match self.optimiser {
            Optimiser::Sgd { rate } => {
                let moved = parameters.iter_mut().zip(gradient);
                moved.for_each(|(parameter, g)| *parameter -= rate * g);
            }
            Optimiser::Adam { rate, beta } => {
                let corrected =
                    (1.0 - SQUARE.powi(self.steps)).sqrt() / (1.0 - beta.powi(self.steps));
                let scale = rate * corrected;
                let moments = self.first.iter_mut().zip(&mut self.second);
                for ((parameter, &g), (m, v)) in parameters.iter_mut().zip(gradient).zip(moments) {
                    *m = beta * *m + (1.0 - beta) * g;
                    *v = SQUARE * *v + (1.0 - SQUARE) * g * g;
                    *parameter -= scale * *m / (v.sqrt() + 1e-8);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first step of Adam has the length of the rate for any gradient; that of SGD is the rate times the gradient.
    #[test]
    fn first_steps_have_the_expected_length() {
        let mut parameters = [1.0f32, 1.0];
        Descent::new(Optimiser::adam(0.1), 2).step(&mut parameters, &[5.0, -0.01]);
        assert!((parameters[0] - 0.9).abs() < 1e-4 && (parameters[1] - 1.1).abs() < 1e-4);
        let mut parameters = [1.0f32, 1.0];
        Descent::new(Optimiser::Sgd { rate: 0.1 }, 2).step(&mut parameters, &[5.0, -1.0]);
        assert!((parameters[0] - 0.5).abs() < 1e-6 && (parameters[1] - 1.1).abs() < 1e-6);
    }

    #[test]
    fn descent_finds_the_minimum_of_a_quadratic() {
        for optimiser in [Optimiser::adam(0.05), Optimiser::Sgd { rate: 0.05 }] {
            let mut at = [3.0f32, -2.0];
            let mut descent = Descent::new(optimiser, 2);
            for _ in 0..2000 {
                let gradient = [2.0 * (at[0] - 1.0), 8.0 * (at[1] - 0.5)];
                descent.step(&mut at, &gradient);
            }
            assert!(
                (at[0] - 1.0).abs() < 0.05 && (at[1] - 0.5).abs() < 0.05,
                "{at:?}"
            );
        }
    }
}
