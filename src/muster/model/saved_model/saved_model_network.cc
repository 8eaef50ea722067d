#include "muster/model/saved_model/saved_model_network.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "muster/model/model.h"
#include "muster/model/saved_model/saved_model_lookup.h"

namespace muster::model {
namespace {

using features::ColumnKind;
using features::ColumnSpec;
using features::Combiner;
using formats::BoolAttr;
using formats::DataType;
using formats::GraphAttr;
using formats::IntAttr;
using formats::TypeAttr;

constexpr float kBatchNormEpsilon = 1e-3F;  // engine::native::BatchNormOptions

class NetworkWriter {
 public:
  NetworkWriter(const ModelSpec& spec, SavedModelFeatures* features, SavedModelVariables* variables,
                const std::string& scope, formats::GraphDefBuilder* graph)
      : spec_(spec),
        logits_(spec.head.logits_dimension()),
        features_(*features),
        variables_(*variables),
        scope_(scope),
        graph_(*graph) {}

  // Repeats the bias for each row of `fed`.
  std::string Baseline(const formats::SignatureTensor& fed) {
    const std::string name = StrCat(scope_, "baseline");
    const auto shape_type = TypeAttr("Index", DataType::kInt32);
    const std::vector<int32_t> zero = {0}, one = {1};
    const std::vector<int32_t> units = {static_cast<int32_t>(logits_)};
    const std::string shape =
        graph_.Node(StrCat(name, "/Shape"), "Shape", {fed.tensor},
                    {TypeAttr("T", fed.type), TypeAttr("out_type", DataType::kInt32)});
    const std::string rows = graph_.Node(StrCat(name, "/rows"), "Slice",
                                         {shape, graph_.Int32s(StrCat(name, "/begin"), zero, {1}),
                                          graph_.Int32s(StrCat(name, "/size"), one, {1})},
                                         {TypeAttr("T", DataType::kInt32), shape_type});
    const std::string dims = graph_.Node(
        StrCat(name, "/dims"), "ConcatV2",
        {rows, graph_.Int32s(StrCat(name, "/units"), units, {1}),
         graph_.Int32(StrCat(name, "/axis"), 0)},
        {TypeAttr("T", DataType::kInt32), TypeAttr("Tidx", DataType::kInt32), IntAttr("N", 2)});
    return graph_.Node(StrCat(name, "/logits"), "BroadcastTo",
                       {variables_.Value("baseline/bias", {logits_}), dims},
                       {TypeAttr("T", DataType::kFloat), TypeAttr("Tidx", DataType::kInt32)});
  }

  std::string Linear() {
    const std::string scope = StrCat(scope_, "linear/linear_model");
    std::vector<std::string> parts;
    for (const std::string& name : spec_.linear->columns) {
      const ColumnSpec& column = *spec_.features.Find(name);
      const std::string variable = StrCat("linear/linear_model/", name, "/weights");
      const std::string part = StrCat(scope, "/", name, "/weighted_sum");
      if (column.is_categorical()) {
        int64_t rows = 0;
        const GraphIds ids = features_.IdsInto(column, variable, part, &rows);
        const std::string table = variables_.Handle(variable, {rows, logits_});
        const TableRows gathered = GatherRows(part, table, ids, /*max_norm=*/0, &graph_);
        parts.push_back(CombineRows(part, gathered, ids, Combiner::kSum, &graph_));
      } else {
        const std::string weights =
            variables_.Value(variable, {spec_.features.Width(column), logits_});
        parts.push_back(Floats(part, "MatMul", {features_.Dense(column), weights}));
      }
    }
    const std::string sum = AddN(StrCat(scope, "/weighted_sum_no_bias"), parts);
    return Floats(StrCat(scope, "/weighted_sum"), "BiasAdd",
                  {sum, variables_.Value("linear/linear_model/bias_weights", {logits_})});
  }

  // The sum of the inner products of all pairs of the columns' vectors: half of the difference
  // between the squares of the sum and the sum of the squares.
  std::string Fm() {
    const std::string scope = StrCat(scope_, "fm");
    int64_t dimension = 0;
    for (const std::string& name : spec_.fm->columns) {
      dimension = std::max<int64_t>(dimension, spec_.features.Find(name)->dimension);
    }
    std::vector<std::string> fields, squares;
    for (const std::string& name : spec_.fm->columns) {
      const ColumnSpec& column = *spec_.features.Find(name);
      std::string vector = Column(column);
      if (column.kind != ColumnKind::kEmbedding) {
        const std::string kernel = StrCat("fm/", name, "/kernel");
        vector =
            Floats(StrCat(scope, "/", name, "/MatMul"), "MatMul",
                   {vector, variables_.Value(kernel, {spec_.features.Width(column), dimension})});
      }
      squares.push_back(Floats(StrCat(scope, "/", name, "/Square"), "Square", {vector}));
      fields.push_back(vector);
    }
    const std::string square_of_sum =
        Floats(StrCat(scope, "/Square"), "Square", {AddN(StrCat(scope, "/AddN"), fields)});
    const std::string sum_of_squares = AddN(StrCat(scope, "/AddN_squares"), squares);
    const std::string pairs =
        graph_.Node(StrCat(scope, "/Sum"), "Sum",
                    {Floats(StrCat(scope, "/Sub"), "Sub", {square_of_sum, sum_of_squares}),
                     graph_.Int32(StrCat(scope, "/axis"), 1)},
                    {TypeAttr("T", DataType::kFloat), TypeAttr("Tidx", DataType::kInt32),
                     BoolAttr("keep_dims", true)});
    return Floats(StrCat(scope, "/Mul"), "Mul",
                  {pairs, graph_.Float(StrCat(scope, "/half"), 0.5F)});
  }

  std::string Dnn() {
    const DnnSpec& dnn = *spec_.dnn;
    int64_t width = 0;
    std::string net = InputLayer("dnn", dnn, &width);
    if (!spec_.cross) {
      net = Hidden("dnn", dnn, net, &width);
    } else if (spec_.cross->parallel) {
      const std::string crossed = Crossed(net, width);
      const int64_t crossed_width = width;
      net = Concat(StrCat(scope_, "dnn/concat"), {crossed, Hidden("dnn", dnn, net, &width)});
      width += crossed_width;
    } else {
      net = Hidden("dnn", dnn, Crossed(net, width), &width);
    }
    return Dense("dnn/logits", net, width, logits_);
  }

  // Concatenates the vectors of both towers.
  Network Towers() {
    Network network = {.logits = "",
                       .query = Tower("query", spec_.towers->query),
                       .item = Tower("item", spec_.towers->item)};
    network.logits = Concat(StrCat(scope_, "towers"), {network.query, network.item});
    return network;
  }

  std::string Tower(const std::string& part, const DnnSpec& dnn) {
    int64_t width = 0;
    std::string net = InputLayer(part, dnn, &width);
    net = Hidden(part, dnn, net, &width);
    net = Dense(StrCat(part, "/vector"), net, width, spec_.towers->dimension);
    return spec_.towers->normalize ? Normalized(StrCat(scope_, part, "/normalized"), net) : net;
  }

  std::string Add(const std::string& a, const std::string& b) {
    return Floats(StrCat(scope_, "add"), "AddV2", {a, b});
  }

 private:
  std::string Floats(const std::string& name, std::string_view op,
                     std::initializer_list<std::string> inputs) {
    return FloatNode(name, op, inputs, &graph_);
  }

  std::string InputLayer(const std::string& part, const DnnSpec& dnn, int64_t* width) {
    std::vector<std::string> parts;
    for (const std::string& name : dnn.columns) {
      const ColumnSpec& column = *spec_.features.Find(name);
      *width += spec_.features.Width(column);
      parts.push_back(Column(column));
    }
    std::string net = parts[0];
    if (parts.size() > 1) {
      net = Concat(StrCat(scope_, part, "/input_from_feature_columns/input_layer/concat"),
                   std::move(parts));
    }
    return dnn.input_batch_norm ? BatchNorm(StrCat(part, "/input_batchnorm"), net, *width) : net;
  }

  // Returns the floats of a dense column, [batch, width]; all parts get the same node.
  std::string Column(const ColumnSpec& column) {
    if (column.kind != ColumnKind::kEmbedding) return features_.Dense(column);
    std::string& node = embeddings_[column.name];
    if (node.empty()) {
      node = Embedding(StrCat(scope_, "dnn/input_from_feature_columns/input_layer/", column.name,
                              "/embedding_lookup"),
                       column);
    }
    return node;
  }

  std::string Hidden(const std::string& part, const DnnSpec& dnn, std::string net, int64_t* width) {
    for (size_t i = 0; i < dnn.hidden_units.size(); ++i) {
      const std::string name = StrCat(part, "/hiddenlayer_", i);
      net = Activated(StrCat(scope_, name), dnn.activation,
                      Dense(name, net, *width, dnn.hidden_units[i]));
      *width = dnn.hidden_units[i];
      if (dnn.batch_norm) net = BatchNorm(StrCat(name, "/batchnorm_", i), net, *width);
    }
    return net;
  }

  // Computes x0 * (W x + b) + x, layer after layer.
  std::string Crossed(const std::string& x0, int64_t width) {
    std::string x = x0;
    for (int i = 0; i < spec_.cross->layers; ++i) {
      const std::string name = StrCat("dnn/crosslayer_", i);
      std::string product;
      if (const int rank = spec_.cross->rank; rank > 0) {
        const std::string kernel = variables_.Value(StrCat(name, "/v/kernel"), {width, rank});
        const std::string narrow = Floats(StrCat(scope_, name, "/v/MatMul"), "MatMul", {x, kernel});
        product = Dense(StrCat(name, "/u"), narrow, rank, width);
      } else {
        product = Dense(name, x, width, width);
      }
      x = Floats(StrCat(scope_, name, "/AddV2"), "AddV2",
                 {Floats(StrCat(scope_, name, "/Mul"), "Mul", {x0, product}), x});
    }
    return x;
  }

  std::string Concat(const std::string& name, std::vector<std::string> parts) {
    const int64_t count = static_cast<int64_t>(parts.size());
    parts.push_back(graph_.Int32(StrCat(name, "/axis"), 1));
    return graph_.Node(
        name, "ConcatV2", parts,
        {TypeAttr("T", DataType::kFloat), TypeAttr("Tidx", DataType::kInt32), IntAttr("N", count)});
  }

  // Applies tf.math.l2_normalize to each row.
  std::string Normalized(const std::string& name, const std::string& rows) {
    const std::string squares = SumSquares(name, rows, &graph_);
    const std::string least = graph_.Float(StrCat(name, "/least"), 1e-12F);
    const std::string factor =
        Floats(StrCat(name, "/Rsqrt"), "Rsqrt",
               {Floats(StrCat(name, "/Maximum"), "Maximum", {squares, least})});
    return Floats(name, "Mul", {rows, factor});
  }

  std::string AddN(const std::string& name, const std::vector<std::string>& parts) {
    return graph_.Node(
        name, "AddN", parts,
        {TypeAttr("T", DataType::kFloat), IntAttr("N", static_cast<int64_t>(parts.size()))});
  }

  std::string Embedding(const std::string& name, const ColumnSpec& column) {
    const ColumnSpec& categorical = *spec_.features.Find(column.input);
    const std::string variable = EmbeddingVariable(column);
    int64_t all_rows = 0;
    const GraphIds ids = features_.IdsInto(categorical, variable, name, &all_rows);
    const std::string table = variables_.Handle(variable, {all_rows, column.dimension});
    const TableRows rows = GatherRows(name, table, ids, column.max_norm, &graph_);
    if (column.pooling == features::Pooling::kNone) {
      return CombineRows(name, rows, ids, column.combiner, &graph_);
    }
    const std::string steps = ids.present.empty() ? rows.has_id : ids.present;
    return PooledSteps(StrCat(name, "/pooled"), rows.values, steps, column.pooling, &graph_);
  }

  std::string Dense(const std::string& name, const std::string& input, int64_t width,
                    int64_t units) {
    const std::string product =
        Floats(StrCat(scope_, name, "/MatMul"), "MatMul",
               {input, variables_.Value(StrCat(name, "/kernel"), {width, units})});
    return Floats(StrCat(scope_, name, "/BiasAdd"), "BiasAdd",
                  {product, variables_.Value(StrCat(name, "/bias"), {units})});
  }

  std::string Activated(const std::string& scope, const std::string& activation,
                        const std::string& input) {
    if (activation == "relu") return Floats(StrCat(scope, "/Relu"), "Relu", {input});
    if (activation == "tanh") return Floats(StrCat(scope, "/Tanh"), "Tanh", {input});
    if (activation == "sigmoid") return Floats(StrCat(scope, "/Sigmoid"), "Sigmoid", {input});
    return input;
  }

  // Computes x * s + (beta - mean * s), s = gamma / sqrt(variance + epsilon), as
  // tf.nn.batch_normalization.
  std::string BatchNorm(const std::string& name, const std::string& input, int64_t width) {
    const std::string scope = StrCat(scope_, name, "/batchnorm");
    const auto variable = [&](std::string_view part) {
      return variables_.Value(StrCat(name, "/", part), {width});
    };
    const std::string epsilon = graph_.Float(StrCat(scope, "/add/y"), kBatchNormEpsilon);
    const std::string variance =
        Floats(StrCat(scope, "/add"), "AddV2", {variable("moving_variance"), epsilon});
    const std::string scale =
        Floats(StrCat(scope, "/mul"), "Mul",
               {Floats(StrCat(scope, "/Rsqrt"), "Rsqrt", {variance}), variable("gamma")});
    const std::string shift = Floats(StrCat(scope, "/sub"), "Sub",
                                     {variable("beta"), Floats(StrCat(scope, "/mul_2"), "Mul",
                                                               {variable("moving_mean"), scale})});
    return Floats(StrCat(scope, "/add_1"), "AddV2",
                  {Floats(StrCat(scope, "/mul_1"), "Mul", {input, scale}), shift});
  }

  const ModelSpec& spec_;
  const int64_t logits_;  // logits per row
  SavedModelFeatures& features_;
  SavedModelVariables& variables_;
  const std::string& scope_;
  formats::GraphDefBuilder& graph_;
  std::map<std::string, std::string> embeddings_;  // by column
};

}  // namespace

Network AddNetwork(const ModelSpec& spec, const std::vector<formats::SignatureTensor>& fed,
                   SavedModelFeatures* features, SavedModelVariables* variables,
                   const std::string& scope, formats::GraphDefBuilder* graph) {
  NetworkWriter network(spec, features, variables, scope, graph);
  if (spec.baseline) return {.logits = network.Baseline(fed[0])};
  if (spec.towers) return network.Towers();
  std::string logits;
  const auto add = [&](const std::string& part) {
    logits = logits.empty() ? part : network.Add(logits, part);
  };
  if (spec.fm) add(network.Fm());
  if (spec.dnn) add(network.Dnn());
  if (spec.linear) add(network.Linear());
  return {.logits = logits};
}

}  // namespace muster::model
