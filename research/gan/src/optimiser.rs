//! Steps down a gradient: plain, or Adam's.

/// How a network's parameters are moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimiser {
    /// Against the gradient, by this rate.
    Sgd {
        /// The rate.
        rate: f32,
    },
    /// Adam (Kingma and Ba 2015) with second moments' rate 0.999.
    Adam {
        /// The rate.
        rate: f32,
        /// beta1, the first moments' rate.
        beta: f32,
    },
}

impl Optimiser {
    /// Adam as GANs are usually trained: beta1 is one half.
    pub const fn adam(rate: f32) -> Self {
        Self::Adam { rate, beta: 0.5 }
    }

    /// By how much it moves parameters.
    pub(crate) const fn rate(self) -> f32 {
        match self {
            Self::Sgd { rate } | Self::Adam { rate, .. } => rate,
        }
    }
}

/// An optimiser and its running means.
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

    /// The first step of Adam is by the rate, whatever the gradient; that of SGD by rate times gradient.
    #[test]
    fn steps_are_as_long_as_they_should_be() {
        let mut parameters = [1.0f32, 1.0];
        Descent::new(Optimiser::adam(0.1), 2).step(&mut parameters, &[5.0, -0.01]);
        assert!((parameters[0] - 0.9).abs() < 1e-4 && (parameters[1] - 1.1).abs() < 1e-4);
        let mut parameters = [1.0f32, 1.0];
        Descent::new(Optimiser::Sgd { rate: 0.1 }, 2).step(&mut parameters, &[5.0, -1.0]);
        assert!((parameters[0] - 0.5).abs() < 1e-6 && (parameters[1] - 1.1).abs() < 1e-6);
    }

    #[test]
    fn a_bowl_has_its_bottom_found() {
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
