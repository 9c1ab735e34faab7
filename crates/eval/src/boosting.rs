//! Gradient-boosted trees for a binary target.
//!
//! The algorithm is TreeBoost with logistic loss (Friedman 2001). Each tree is grown on the gradient g = p - y and the
//! curvature h = p (1 - p) of the loss. Splits maximise the gain G_l^2/H_l + G_r^2/H_r - G^2/H, and a leaf's value is
//! -G/H. Attributes are codes, so a split sends codes up to a limit to the left; every code is a candidate, evaluated
//! from histograms. There is no randomness: the same table gives the same trees.

use fhaim_domain::Table;

use crate::Error;

/// Constant added to H, which keeps the values of leaves with few records small.
const RIDGE: f64 = 1.0;

/// Options for growing trees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoostingOptions {
    /// Number of trees.
    pub trees: usize,
    /// Maximum number of splits between root and leaf.
    pub depth: usize,
    /// Learning rate: the factor of each tree's leaf values.
    pub rate: f64,
}

impl Default for BoostingOptions {
    fn default() -> Self {
        Self {
            trees: 100,
            depth: 4,
            rate: 0.1,
        }
    }
}

/// Trees that predict the log-odds of a record's positive class.
#[derive(Clone, Debug)]
pub struct Boosted {
    start: f64,
    trees: Vec<Tree>,
}

/// A tree's nodes, the root first.
#[derive(Clone, Debug)]
struct Tree(Vec<Node>);

#[derive(Clone, Copy, Debug)]
enum Node {
    Leaf(f64),
    /// Records whose code is at most `code` go to node `left`, others to `left + 1`.
    Split {
        attribute: usize,
        code: u32,
        left: usize,
    },
}

/// A node to be split, with its depth and records.
struct Open {
    node: usize,
    depth: usize,
    rows: Vec<u32>,
}

/// The best split of a node.
struct Split {
    gain: f64,
    attribute: usize,
    code: u32,
}

impl Boosted {
    /// Trains on all attributes except `target`, whose code `positive` is the positive class.
    ///
    /// # Errors
    /// [`Error::Codes`] if the table does not have the attribute `target`.
    pub fn fit(
        table: &Table,
        target: usize,
        positive: u32,
        options: &BoostingOptions,
    ) -> Result<Self, Error> {
        let attributes = table.domain().len();
        if target >= attributes {
            return Err(Error::Codes(fhaim_domain::CodesProblem::Attribute {
                attribute: target,
                attributes,
            }));
        }
        let labels: Vec<f64> = (table.column(target).iter())
            .map(|&code| f64::from(u8::from(code == positive)))
            .collect();
        let share = (labels.iter().sum::<f64>() + 0.5) / (labels.len() as f64 + 1.0);
        let start = (share / (1.0 - share)).ln();
        let features: Vec<usize> = (0..attributes).filter(|&a| a != target).collect();
        let mut margins = vec![start; labels.len()];
        let mut trees = Vec::with_capacity(options.trees);
        for _ in 0..options.trees {
            let slopes = slopes(&margins, &labels);
            let tree = Tree::grow(table, &features, &slopes, options);
            for (row, margin) in margins.iter_mut().enumerate() {
                *margin += tree.value(table.columns(), row);
            }
            trees.push(tree);
        }
        Ok(Self { start, trees })
    }

    /// Returns the log-odds of the positive class for each record. The table must have the schema of the training
    /// table.
    pub fn margins(&self, table: &Table) -> Vec<f64> {
        let value = |row| {
            let trees = self.trees.iter();
            let sum: f64 = trees.map(|tree| tree.value(table.columns(), row)).sum();
            self.start + sum
        };
        (0..table.records()).map(value).collect()
    }
}

/// Returns gradient and curvature of the logistic loss for each record.
fn slopes(margins: &[f64], labels: &[f64]) -> Vec<(f64, f64)> {
    let slope = |(margin, label): (&f64, &f64)| {
        let p = 1.0 / (1.0 + (-margin).exp());
        (p - label, (p * (1.0 - p)).max(1e-12))
    };
    margins.iter().zip(labels).map(slope).collect()
}

impl Tree {
    fn grow(
        table: &Table,
        features: &[usize],
        slopes: &[(f64, f64)],
        options: &BoostingOptions,
    ) -> Self {
        let mut nodes = vec![Node::Leaf(0.0)];
        let mut open = vec![Open {
            node: 0,
            depth: 0,
            rows: (0..table.records() as u32).collect(),
        }];
        while let Some(Open { node, depth, rows }) = open.pop() {
            let split = (depth < options.depth)
                .then(|| best_split(table, features, slopes, &rows))
                .flatten();
            let Some(Split {
                attribute, code, ..
            }) = split
            else {
                let (g, h) = sums(slopes, &rows);
                nodes[node] = Node::Leaf(-options.rate * g / (h + RIDGE));
                continue;
            };
            let left = nodes.len();
            nodes[node] = Node::Split {
                attribute,
                code,
                left,
            };
            nodes.extend([Node::Leaf(0.0); 2]);
            let column = table.column(attribute);
            let (low, high) = rows.iter().partition(|&&row| column[row as usize] <= code);
            for (offset, rows) in [low, high].into_iter().enumerate() {
                open.push(Open {
                    node: left + offset,
                    depth: depth + 1,
                    rows,
                });
            }
        }
        Self(nodes)
    }

    fn value(&self, columns: &[Vec<u32>], row: usize) -> f64 {
        let mut node = 0;
        loop {
            match self.0[node] {
                Node::Leaf(value) => return value,
                Node::Split {
                    attribute,
                    code,
                    left,
                } => node = left + usize::from(columns[attribute][row] > code),
            }
        }
    }
}

fn sums(slopes: &[(f64, f64)], rows: &[u32]) -> (f64, f64) {
    rows.iter().fold((0.0, 0.0), |(g, h), &row| {
        let (dg, dh) = slopes[row as usize];
        (g + dg, h + dh)
    })
}

/// Returns the split with the largest gain (the first of several), or `None` if no split has a gain.
fn best_split(
    table: &Table,
    features: &[usize],
    slopes: &[(f64, f64)],
    rows: &[u32],
) -> Option<Split> {
    let (all_g, all_h) = sums(slopes, rows);
    let score = |g: f64, h: f64| g * g / (h + RIDGE);
    let mut best: Option<Split> = None;
    for &attribute in features {
        let column = table.column(attribute);
        let mut histogram = vec![(0.0, 0.0, 0u32); table.domain().size(attribute)];
        for &row in rows {
            let (g, h) = slopes[row as usize];
            let bin = &mut histogram[column[row as usize] as usize];
            *bin = (bin.0 + g, bin.1 + h, bin.2 + 1);
        }
        let (mut g, mut h, mut count) = (0.0, 0.0, 0u32);
        for (code, bin) in histogram.iter().enumerate() {
            (g, h, count) = (g + bin.0, h + bin.1, count + bin.2);
            if bin.2 == 0 || count as usize == rows.len() {
                continue;
            }
            let gain = score(g, h) + score(all_g - g, all_h - h) - score(all_g, all_h);
            if gain > best.as_ref().map_or(1e-9, |best| best.gain) {
                let code = code as u32;
                best = Some(Split {
                    gain,
                    attribute,
                    code,
                });
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Schema;

    /// Returns two columns of eight codes, and a class that is the exclusive or of a threshold on each. Only two splits
    /// together predict it.
    fn exclusive(records: u32) -> Table {
        let codes: Vec<String> = (0..8).map(|i| format!("\"{i}\"")).collect();
        let column = |name: &str, codes: &str| {
            format!(r#"{{"name": "{name}", "kind": "categorical", "categories": [{codes}]}}"#)
        };
        let eight = codes.join(", ");
        let json = format!(
            r#"{{"name": "x", "columns": [{}, {}, {}]}}"#,
            column("a", &eight),
            column("b", &eight),
            column("y", "\"0\", \"1\"")
        );
        let schema = Schema::from_json("x", json.as_bytes()).unwrap();
        let a: Vec<u32> = (0..records).map(|i| i % 8).collect();
        let b: Vec<u32> = (0..records).map(|i| i / 8 * 5 % 8).collect();
        let y = a
            .iter()
            .zip(&b)
            .map(|(a, b)| u32::from((*a < 4) != (*b < 3)));
        let y = y.collect();
        Table::new(schema, vec![a, b, y]).unwrap()
    }

    fn auc(options: &BoostingOptions) -> f64 {
        let table = exclusive(640);
        let model = Boosted::fit(&table, 2, 1, options).unwrap();
        let positive: Vec<bool> = table.column(2).iter().map(|&y| y == 1).collect();
        crate::auc(&positive, &model.margins(&table)).unwrap()
    }

    #[test]
    fn deep_trees_learn_an_exclusive_or() {
        assert_eq!(auc(&BoostingOptions::default()), 1.0);
        let stumps = BoostingOptions {
            depth: 1,
            ..BoostingOptions::default()
        };
        assert!(auc(&stumps) < 0.75);
        let none = BoostingOptions {
            trees: 0,
            ..BoostingOptions::default()
        };
        assert_eq!(auc(&none), 0.5);
    }

    #[test]
    fn target_outside_the_table_is_rejected() {
        let options = BoostingOptions::default();
        assert!(matches!(
            Boosted::fit(&exclusive(16), 3, 1, &options),
            Err(Error::Codes(..))
        ));
    }
}
