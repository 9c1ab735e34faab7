//! A generator and a discriminator, and their training steps (Goodfellow et al. 2014, with the non-saturating loss).
//!
//! Networks for tables have conditions, as in CTGAN (Xu et al. 2019). A condition is a value of one attribute. Both
//! networks get it as an input, and the generator has to meet it. CTGAN draws conditions by frequencies that it reads
//! from the records. Here, the condition of a real record is one of the record's values, and a generator step draws
//! an attribute and then a value uniformly. All information from the records is therefore clipped and noised with the
//! rest.

use rand::Rng;

use crate::Error;
use crate::conditions::{add_condition_loss, all_conditions, own_conditions, uniform_conditions};
use crate::examples::{Examples, Shape};
use crate::hidden::Hidden;
use crate::matrix::Matrix;
use crate::network::{MAX_VALUES, Network, Tape, parameter_count};
use crate::optimiser::Optimiser;
use crate::private::{Privacy, clipped_sum};

/// How often one of the values of a generated record becomes the condition for the next try, so that records do not
/// follow the uniform first conditions.
const SWEEPS: usize = 5;

/// Number of records that are generated together.
const DRAWN: usize = 1024;

/// Architecture and training settings of a pair of networks.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// Number of noise inputs of a generator.
    pub noise: usize,
    /// The hidden layers.
    pub hidden: Hidden,
    /// Number of steps, or rounds.
    pub steps: u32,
    /// Number of records per step; with privacy, the expected number.
    pub batch: usize,
    /// Optimiser of discriminators.
    pub discriminator: Optimiser,
    /// Optimiser of generators.
    pub generator: Optimiser,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            noise: 64,
            hidden: Hidden::Dense(vec![128, 256]),
            steps: 2000,
            batch: 64,
            discriminator: Optimiser::adam(2e-4),
            generator: Optimiser::adam(2e-4),
        }
    }
}

impl Training {
    /// Returns the number of parameters of a pair of networks for records of this shape.
    ///
    /// # Errors
    /// Those of [`Gan::random`] for the networks.
    pub fn parameters(&self, shape: &Shape) -> Result<usize, Error> {
        let generator = parameter_count(&self.hidden.generator(self.noise, shape)?)?;
        let inputs = shape.width().saturating_add(shape.conditions());
        Ok(generator + parameter_count(&self.hidden.critic(inputs, shape, 1)?)?)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        for (what, value) in [
            ("noise", self.noise),
            ("batch", self.batch),
            ("steps", self.steps as usize),
        ] {
            if value == 0 {
                return Err(Error::setting(what, "it must be at least 1"));
            }
        }
        for rate in [self.discriminator.rate(), self.generator.rate()] {
            if !(rate > 0.0 && rate.is_finite()) {
                return Err(Error::setting("rate", "it must be a positive number"));
            }
        }
        Ok(())
    }
}

/// A network that generates records from noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    pub(crate) shape: Shape,
    pub(crate) network: Network,
}

/// A generator and a discriminator.
#[derive(Clone, Debug, PartialEq)]
pub struct Gan {
    pub(crate) generator: Generator,
    pub(crate) discriminator: Network,
}

/// Generated records, with the values that the backward pass needs.
pub(crate) struct Made {
    pub(crate) records: Matrix,
    outputs: Matrix,
    tape: Tape,
}

impl Generator {
    fn noise(&self) -> usize {
        self.network.inputs() - self.shape.conditions()
    }

    /// Generates one record per condition.
    fn make<R: Rng + ?Sized>(&self, conditions: &Matrix, rng: &mut R) -> Result<Made, Error> {
        let count = conditions.rows() * self.noise();
        let noise = (0..count).map(|_| normal(rng)).collect();
        let noise = Matrix::new(conditions.rows(), self.noise(), noise)?;
        let (outputs, tape) = self.network.forward(noise.beside(conditions))?;
        Ok(Made {
            records: self.shape.shape(outputs.clone(), rng),
            outputs,
            tape,
        })
    }

    /// Returns the gradient of the generator's loss, given its derivatives by the generated records and the conditions
    /// that the records had to meet.
    fn gradient(&self, made: &Made, delta: Matrix, conditions: &Matrix) -> Vec<f32> {
        let mut delta = self.shape.back(&made.records, delta);
        if let Shape::Codes(sizes) = &self.shape {
            add_condition_loss(&made.outputs, conditions, sizes, &mut delta);
        }
        let back = self.network.backward(&made.tape, delta);
        self.network.gradient(&made.tape, &back)
    }

    /// Generates records.
    ///
    /// # Errors
    /// [`Error::Shape`] for zero records, and if large weights make values that are not finite;
    /// [`Error::Setting`] for more than [`Shape::most_records`].
    pub fn sample<R: Rng + ?Sized>(&self, records: usize, rng: &mut R) -> Result<Examples, Error> {
        self.shape.check_records(records)?;
        let mut all = Matrix::zeros(0, self.shape.width());
        while all.rows() < records {
            let count = DRAWN.min(records - all.rows());
            let mut conditions = uniform_conditions(&self.shape, count, rng);
            let mut made = self.make(&conditions, rng)?.records;
            for _ in 0..SWEEPS * usize::from(self.shape.conditions() > 0) {
                conditions = own_conditions(&self.shape, &made, rng);
                made = self.make(&conditions, rng)?.records;
            }
            all = all.above(&made);
        }
        if all.values().iter().any(|value| !value.is_finite()) {
            let problem = "generated values are not finite, because the weights of the networks are too large";
            return Err(Error::Shape(problem.to_owned()));
        }
        Examples::checked(self.shape.clone(), all)
    }
}

impl Gan {
    /// Creates untrained networks.
    ///
    /// # Errors
    /// [`Error::Shape`] for invalid networks; [`Error::Setting`] if noise, steps or batch are zero, if the batch is too
    /// large for a pass, or if a rate is not positive.
    pub fn random<R: Rng + ?Sized>(
        shape: &Shape,
        training: &Training,
        rng: &mut R,
    ) -> Result<Self, Error> {
        training.check()?;
        let hidden = &training.hidden;
        let generator = Network::random(hidden.generator(training.noise, shape)?, rng)?;
        let inputs = shape.width() + shape.conditions();
        let discriminator = Network::random(hidden.critic(inputs, shape, 1)?, rng)?;
        let gan = Self::new(shape.clone(), generator, discriminator)?;
        gan.check_batch(training.batch)?;
        Ok(gan)
    }

    /// Checks that a batch of real records, and as many generated ones, can pass through the larger network.
    fn check_batch(&self, batch: usize) -> Result<(), Error> {
        let networks = [&self.generator.network, &self.discriminator];
        let kept = networks.map(Network::kept).into_iter().max().unwrap_or(1);
        let most = MAX_VALUES / kept.saturating_mul(2).max(1);
        match batch <= most {
            true => Ok(()),
            false => Err(Error::setting(
                "batch",
                format!("it must be at most {most} for networks of this size"),
            )),
        }
    }

    /// Checks that all weights are finite. Training cannot recover from others.
    pub(crate) fn check_progress(&self, steps: u32) -> Result<(), Error> {
        match self.generator.network.is_finite() && self.discriminator.is_finite() {
            true => Ok(()),
            false => Err(Error::Diverged { steps }),
        }
    }

    /// Combines two networks to a pair.
    ///
    /// # Errors
    /// [`Error::Shape`] if the networks do not fit the shape.
    pub fn new(shape: Shape, generator: Network, discriminator: Network) -> Result<Self, Error> {
        let (width, conditions) = (shape.width(), shape.conditions());
        let fits = generator.outputs() == width
            && generator.inputs() > conditions
            && discriminator.inputs() == width + conditions
            && discriminator.outputs() == 1;
        if width == 0 || !fits {
            return Err(Error::Shape(
                "the networks do not fit the shape of the records".to_owned(),
            ));
        }
        Ok(Self {
            generator: Generator {
                shape,
                network: generator,
            },
            discriminator,
        })
    }

    /// Returns the generator.
    pub fn generator(&self) -> &Generator {
        &self.generator
    }

    /// Returns the shape of a record.
    pub fn shape(&self) -> &Shape {
        &self.generator.shape
    }

    /// Returns the discriminator's logit for each record, which is high for records that seem real. For tables, it is
    /// the mean over all conditions that the record meets.
    ///
    /// # Errors
    /// [`Error::Shape`] if the records have another shape.
    pub fn scores(&self, examples: &Examples) -> Result<Vec<f64>, Error> {
        if examples.shape() != self.shape() {
            return Err(Error::Shape(
                "the records do not have the shape of the networks' records".to_owned(),
            ));
        }
        let records = examples.values();
        let mut sums = vec![0.0; records.rows()];
        let all = all_conditions(self.shape(), records);
        for conditions in &all {
            let (odds, _) = self
                .discriminator
                .forward(records.clone().beside(conditions))?;
            let found = sums.iter_mut().zip(odds.values());
            found.for_each(|(sum, &o)| *sum += f64::from(o) / all.len() as f64);
        }
        Ok(sums)
    }

    /// Returns the gradient of the discriminator's loss: the mean negative log-likelihood of real records and of as
    /// many generated ones.
    pub(crate) fn critic_gradient<R: Rng + ?Sized>(
        &self,
        real: &Matrix,
        rng: &mut R,
    ) -> Result<Vec<f32>, Error> {
        let conditions = own_conditions(self.shape(), real, rng);
        let made = self.generator.make(&conditions, rng)?.records;
        let rows = real
            .clone()
            .beside(&conditions)
            .above(&made.beside(&conditions));
        let (odds, tape) = self.discriminator.forward(rows)?;
        let share = 1.0 / real.rows().max(1) as f32;
        let back = self
            .discriminator
            .backward(&tape, critic_delta(&odds, real.rows(), share));
        Ok(self.discriminator.gradient(&tape, &back))
    }

    /// Returns the private version of that gradient. Each record's part is clipped, noise is added to the sum, and the
    /// sum is divided by a public number of records. Generated images do not depend on a record. Generated records of a
    /// table use a record's condition, and so belong to its part.
    pub(crate) fn private_gradient<R: Rng + ?Sized>(
        &self,
        real: &Matrix,
        expected: usize,
        privacy: &Privacy,
        rng: &mut R,
    ) -> Result<Vec<f32>, Error> {
        let (shape, count) = (self.shape(), real.rows());
        let conditions = own_conditions(shape, real, rng);
        let paired = shape.conditions() > 0;
        let mut rows = real.clone().beside(&conditions);
        if paired {
            let made = self.generator.make(&conditions, rng)?.records;
            rows = rows.above(&made.beside(&conditions));
        }
        let (odds, tape) = self.discriminator.forward(rows)?;
        let back = self
            .discriminator
            .backward(&tape, critic_delta(&odds, count, 1.0));
        let examples = (0..count).map(|row| {
            if paired {
                vec![row, count + row]
            } else {
                vec![row]
            }
        });
        let sum = clipped_sum(&self.discriminator, (&tape, &back), examples, privacy.clip);
        let share = 1.0 / expected as f32;
        let mut gradient = privacy.release(sum, rng)?;
        gradient.iter_mut().for_each(|g| *g *= share);
        if !paired {
            let made = self
                .generator
                .make(&Matrix::zeros(expected, 0), rng)?
                .records;
            let (odds, tape) = self.discriminator.forward(made)?;
            let back = self
                .discriminator
                .backward(&tape, critic_delta(&odds, 0, share));
            let of_made = self.discriminator.gradient(&tape, &back);
            gradient.iter_mut().zip(of_made).for_each(|(g, m)| *g += m);
        }
        Ok(gradient)
    }

    /// Returns the gradient of the generator's loss over `count` records; `more` adds derivatives by the generated
    /// records.
    pub(crate) fn generator_gradient<R: Rng + ?Sized>(
        &self,
        count: usize,
        rng: &mut R,
        more: impl FnOnce(&Matrix, &mut R) -> Result<Option<Matrix>, Error>,
    ) -> Result<Vec<f32>, Error> {
        let conditions = uniform_conditions(self.shape(), count, rng);
        let made = self.generator.make(&conditions, rng)?;
        let (odds, tape) = self
            .discriminator
            .forward(made.records.clone().beside(&conditions))?;
        let share = 1.0 / count.max(1) as f32;
        let back = self
            .discriminator
            .backward(&tape, critic_delta(&odds, count, share));
        let mut delta = back.input.first_columns(self.shape().width());
        if let Some(more) = more(&made.records, rng)? {
            delta
                .values_mut()
                .iter_mut()
                .zip(more.values())
                .for_each(|(d, m)| *d += m);
        }
        Ok(self.generator.gradient(&made, delta, &conditions))
    }
}

/// Returns the derivatives of the log loss by logits. The first `real` of them should be high, all others low.
fn critic_delta(odds: &Matrix, real: usize, share: f32) -> Matrix {
    let mut delta = odds.clone();
    for (row, value) in delta.values_mut().iter_mut().enumerate() {
        let wanted = if row < real { 1.0 } else { 0.0 };
        *value = share * (sigmoid(*value) - wanted);
    }
    delta
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// Draws a standard normal variate (Box and Muller 1958). It is a generator's input, so no privacy depends on its exact
/// distribution.
fn normal<R: Rng + ?Sized>(rng: &mut R) -> f32 {
    let (radius, angle): (f64, f64) = (rng.random(), rng.random());
    let radius = (-2.0 * (1.0 - radius).ln()).sqrt();
    (radius * (std::f64::consts::TAU * angle).cos()) as f32
}

#[cfg(test)]
mod tests;
