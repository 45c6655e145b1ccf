// SPDX-License-Identifier: Apache-2.0
#include "workflow/draw.h"

#include "base/text.h"

#include <algorithm>
#include <map>

namespace ingot {

namespace {

struct Box {
    std::string title;
    std::string detail;
    std::vector<size_t> from; // indices of the boxes it reads
    int row = 0;
    double order = 0;
    int x = 0;
};

std::string types_of(const Graph& g, std::span<const Value> values) {
    std::string out;
    for (Value v : values) {
        append(out, str(out.empty() ? "" : " ", g.type(v)));
    }
    return out;
}

std::string shortened(const std::string& s, size_t limit) {
    return s.size() <= limit ? s : s.substr(0, limit - 3) + "...";
}

// Inputs, nodes (without constants) and outputs in topological order.
std::vector<Box> boxes_of(const Graph& g) {
    std::vector<Box> boxes;
    std::map<uint32_t, size_t> producer;
    for (Value v : g.inputs()) {
        producer[v.id] = boxes.size();
        boxes.push_back({g.value_name(v), to_text(g.type(v)), {}, 0, 0, 0});
    }
    auto read = [&](Box& b, Value v) {
        auto it = producer.find(v.id);
        if (it != producer.end() &&
            std::find(b.from.begin(), b.from.end(), it->second) == b.from.end()) {
            b.from.push_back(it->second);
            b.row = std::max(b.row, boxes[it->second].row + 1);
        }
    };
    for (const Node& n : g.nodes()) {
        if (n.is(constant_def)) {
            continue;
        }
        Box b;
        b.title = n.name.empty() ? std::string(n.def->name)
                                 : str(n.def->name, " ", shortened(n.name, 40));
        b.detail = types_of(g, n.outputs);
        for (Value v : n.inputs) {
            read(b, v);
        }
        for (Value v : n.outputs) {
            producer[v.id] = boxes.size();
        }
        boxes.push_back(std::move(b));
    }
    for (size_t i = 0; i < g.outputs().size(); ++i) {
        Box b;
        b.title = g.output_names()[i];
        b.detail = to_text(g.type(g.outputs()[i]));
        read(b, g.outputs()[i]);
        boxes.push_back(std::move(b));
    }
    return boxes;
}

std::string escaped(const std::string& s) {
    std::string out;
    for (char c : s) {
        out += c == '<'   ? "&lt;"
               : c == '>' ? "&gt;"
               : c == '&' ? "&amp;"
               : c == '"' ? "&quot;"
                          : std::string(1, c);
    }
    return out;
}

} // namespace

std::string draw_dot(const Graph& g) {
    std::vector<Box> boxes = boxes_of(g);
    std::string out =
        "digraph ingot {\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n";
    for (size_t i = 0; i < boxes.size(); ++i) {
        std::string label = quote(boxes[i].title + "\n" + boxes[i].detail);
        append(out, str("  n", i, " [label=", label, "];\n"));
        for (size_t f : boxes[i].from) {
            append(out, str("  n", f, " -> n", i, ";\n"));
        }
    }
    return out + "}\n";
}

std::string draw_svg(const Graph& g) {
    constexpr int width = 260;
    constexpr int height = 40;
    constexpr int gap_x = 30;
    constexpr int gap_y = 40;
    std::vector<Box> boxes = boxes_of(g);
    std::map<int, std::vector<size_t>> rows;
    for (size_t i = 0; i < boxes.size(); ++i) {
        Box& b = boxes[i];
        for (size_t f : b.from) { // the mean position of its operands
            b.order += boxes[f].order / static_cast<double>(b.from.size());
        }
        auto& row = rows[b.row];
        b.order += 0.001 * static_cast<double>(row.size());
        row.push_back(i);
    }
    size_t widest = 1;
    for (auto& [row, list] : rows) {
        std::stable_sort(list.begin(), list.end(),
                         [&](size_t a, size_t b) { return boxes[a].order < boxes[b].order; });
        widest = std::max(widest, list.size());
    }
    int total = static_cast<int>(widest) * (width + gap_x) + gap_x;
    for (auto& [row, list] : rows) {
        int used = static_cast<int>(list.size()) * (width + gap_x) - gap_x;
        for (size_t i = 0; i < list.size(); ++i) {
            boxes[list[i]].x = (total - used) / 2 + static_cast<int>(i) * (width + gap_x);
        }
    }
    auto y_of = [&](const Box& b) { return gap_y / 2 + b.row * (height + gap_y); };
    int bottom = static_cast<int>(rows.size()) * (height + gap_y);
    std::string out =
        str("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", total, "\" height=\"", bottom,
            "\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
            "fill=\"#fff\"/>\n");
    for (const Box& b : boxes) {
        for (size_t f : b.from) {
            int x0 = boxes[f].x + width / 2;
            int y0 = y_of(boxes[f]) + height;
            int x1 = b.x + width / 2;
            int y1 = y_of(b);
            append(out,
                   str("<path d=\"M", x0, " ", y0, " C", x0, " ", y0 + gap_y / 2, " ", x1, " ",
                       y1 - gap_y / 2, " ", x1, " ", y1, "\" fill=\"none\" stroke=\"#888\"/>\n"));
        }
    }
    for (const Box& b : boxes) {
        append(out, str("<rect x=\"", b.x, "\" y=\"", y_of(b), "\" width=\"", width, "\" height=\"",
                        height, "\" rx=\"5\" fill=\"", b.from.empty() ? "#e8f4e8" : "#eef2fa",
                        "\" stroke=\"#667\"/>\n"));
        append(out, str("<text x=\"", b.x + 8, "\" y=\"", y_of(b) + 16, "\">",
                        escaped(shortened(b.title, 42)), "</text><text x=\"", b.x + 8, "\" y=\"",
                        y_of(b) + 32, "\" fill=\"#555\">", escaped(shortened(b.detail, 42)),
                        "</text>\n"));
    }
    return out + "</svg>\n";
}

} // namespace ingot
