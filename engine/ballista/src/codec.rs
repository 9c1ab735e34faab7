//! Encodes and decodes plans. Allows only our two operators and the nodes that Ballista puts between stages.
//!
//! An executor runs a plan whose root writes a shuffle. This codec decodes every such node and every operator of ours,
//! together with its inputs. It refuses a plan with any other node, such as a file scan or an expression.

use crate::nodes::{Kind, Node, ORDERS};
use crate::site::Site;
use ballista_core::execution_plans::{
    ShuffleReaderExec, ShuffleWriterExec, SortShuffleWriterExec, UnresolvedShuffleExec,
};
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use std::any::Any;
use std::sync::Arc;

const MULTIPLY: &[u8] = b"fhaim multiply 1";
const PACK: &[u8] = b"fhaim pack 1";

/// Encodes and decodes plans of our operators.
#[derive(Debug, Default)]
pub struct Codec {
    ballista: BallistaPhysicalExtensionCodec,
    site: Option<Arc<Site>>,
}

impl Codec {
    /// Creates a codec for an executor, whose decoded operators can run.
    pub fn at(site: Arc<Site>) -> Self {
        Self {
            site: Some(site),
            ..Self::default()
        }
    }
}

fn kind_of(plan: &Arc<dyn ExecutionPlan>) -> Option<Kind> {
    plan.downcast_ref::<Node>().map(Node::kind)
}

/// Checks whether a plan is a source of orders in memory.
fn is_orders(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let source = plan.downcast_ref::<DataSourceExec>();
    plan.schema() == *ORDERS
        && source.is_some_and(|source| {
            let source: &dyn Any = source.data_source().as_ref();
            source.is::<MemorySourceConfig>()
        })
}

/// Checks whether a plan reads the output of another stage.
fn is_shuffled(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let repartitioned = plan.downcast_ref::<RepartitionExec>();
    plan.is::<ShuffleReaderExec>()
        || plan.is::<UnresolvedShuffleExec>()
        || repartitioned.is_some_and(|plan| kind_of(plan.input()) == Some(Kind::Multiply))
}

/// Checks whether a plan is a valid input of an operator.
type Allowed = fn(&Arc<dyn ExecutionPlan>) -> bool;

fn refused(what: &str) -> DataFusionError {
    DataFusionError::Plan(format!("the plan is not one of ours: {what}"))
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (kind, allowed): (_, Allowed) = match bytes {
            MULTIPLY => (Kind::Multiply, is_orders),
            PACK => (Kind::Pack, is_shuffled),
            _ => return self.decode_ballista(bytes, inputs, context, converter),
        };
        match inputs {
            [input] if allowed(input) => {
                Ok(Arc::new(Node::new(kind, input.clone(), self.site.clone())?))
            }
            _ => Err(refused("an operator has a foreign input")),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match kind_of(&node) {
            Some(Kind::Multiply) => bytes.extend_from_slice(MULTIPLY),
            Some(Kind::Pack) => bytes.extend_from_slice(PACK),
            None => self.ballista.try_encode(node, bytes, converter)?,
        }
        Ok(())
    }
}

impl Codec {
    /// Decodes readers of other stages, and writers over one of our operators.
    fn decode_ballista(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Ballista decodes a writer's input without checking whether there is one.
        if inputs.iter().any(|input| kind_of(input).is_none()) {
            return Err(refused("a stage writes the output of a foreign node"));
        }
        if inputs.is_empty() {
            return self.decode_reader(bytes, context, converter);
        }
        let plan = self
            .ballista
            .try_decode(bytes, inputs, context, converter)?;
        if plan.is::<ShuffleWriterExec>() || plan.is::<SortShuffleWriterExec>() {
            Ok(plan)
        } else {
            Err(refused(plan.name()))
        }
    }

    fn decode_reader(
        &self,
        bytes: &[u8],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        use ballista_core::serde::protobuf::BallistaPhysicalPlanNode;
        use ballista_core::serde::protobuf::ballista_physical_plan_node::PhysicalPlanType;
        use prost::Message;
        let node = BallistaPhysicalPlanNode::decode(bytes);
        let node = node.map_err(|error| refused(&error.to_string()))?;
        match node.physical_plan_type {
            Some(PhysicalPlanType::ShuffleReader(_) | PhysicalPlanType::UnresolvedShuffle(_)) => {
                self.ballista.try_decode(bytes, &[], context, converter)
            }
            _ => Err(refused("a foreign leaf")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::PARTIALS;
    use ballista_core::JobId;
    use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion_proto::physical_plan::AsExecutionPlan;
    use datafusion_proto::protobuf::PhysicalPlanNode;

    fn orders() -> Arc<dyn ExecutionPlan> {
        let source = MemorySourceConfig::try_new(&[vec![]], ORDERS.clone(), None).unwrap();
        DataSourceExec::from_data_source(source)
    }

    fn written(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let job = JobId::new("job".to_owned());
        Arc::new(ShuffleWriterExec::try_new(job, 1, input, String::new()).unwrap())
    }

    /// Encodes and decodes a plan.
    fn travel(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let codec = Codec::default();
        let wire = PhysicalPlanNode::try_from_physical_plan(plan, &codec)?;
        wire.try_into_physical_plan(&TaskContext::default(), &codec)
    }

    #[test]
    fn foreign_plan_is_refused() {
        let multiply = Arc::new(Node::new(Kind::Multiply, orders(), None).unwrap());
        let ours = travel(written(multiply.clone())).unwrap();
        assert!(kind_of(ours.children()[0]) == Some(Kind::Multiply));
        let empty: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(ORDERS.clone()));
        let partials: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(PARTIALS.clone()));
        let coalesced = Arc::new(CoalescePartitionsExec::new(multiply.clone()));
        let over = |kind, input| Arc::new(Node::new(kind, input, None).unwrap());
        let foreign: Vec<Arc<dyn ExecutionPlan>> = vec![
            written(orders()),
            written(empty.clone()),
            written(coalesced),
            over(Kind::Multiply, empty),
            over(Kind::Pack, partials),
            over(Kind::Pack, multiply),
            written(written(orders())),
        ];
        for plan in foreign {
            let name = format!("{plan:?}");
            let refused = travel(plan).err().unwrap_or_else(|| panic!("{name}"));
            assert!(refused.to_string().contains("not one of ours"), "{refused}");
        }
    }
}
