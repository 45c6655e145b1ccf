# SPDX-License-Identifier: Apache-2.0
"""Networks of application_models.py for pictures, written here: no package that is at hand has them."""
from model_makers import restorer
from application_sounds import rotated


def conv(i, o, k=3, s=1, d=1, act="relu", g=1, bias=False):
    """Convolution, batch normalisation, activation."""
    from torch import nn

    acts = {"relu": nn.ReLU, "leaky": lambda: nn.LeakyReLU(0.1), "none": nn.Identity, "relu6": nn.ReLU6}
    return nn.Sequential(nn.Conv2d(i, o, k, s, d * (k // 2), d, g, bias), nn.BatchNorm2d(o), acts[act]())


def spread(model, *shape):
    """Products whose outputs on noise have a deviation of 1: with other random weights, deep models give nearly a constant, or infinity."""
    import torch
    from torch import nn

    def scale(m, _, out):
        deviation = out.std().clamp_min(1e-6)
        for p in m.parameters():
            p.data /= deviation
        return out / deviation

    kinds = (nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.Linear)
    hooks = [m.register_forward_hook(scale) for m in model.modules() if isinstance(m, kinds)]
    with torch.no_grad():
        model.eval()(torch.randn(*shape))
    for hook in hooks:
        hook.remove()
    return model


def resized(x, like):
    import torch

    return torch.nn.functional.interpolate(x, size=like.shape[2:], mode="bilinear", align_corners=False)


def warp(x, flow):
    """x at positions moved by flow in pixels: RIFE's and RAFT's look-up."""
    import torch

    h, w = x.shape[2:]
    rows, columns = (torch.linspace(-1, 1, n, device=x.device, dtype=x.dtype) for n in (h, w))
    grid = torch.stack([columns.expand(h, w), rows[:, None].expand(h, w)], 2)[None]
    moved = torch.stack([flow[:, 0] * (2 / (w - 1)), flow[:, 1] * (2 / (h - 1))], 3)
    return torch.nn.functional.grid_sample(x, grid + moved, mode="bilinear", padding_mode="border", align_corners=True)


def u2net():
    import torch
    from torch import nn

    class RSU(nn.Module):
        """A residual block that is a small U-Net; `flat` dilates in place of halving."""

        def __init__(self, depth, i, mid, o, flat=False):
            super().__init__()
            self.flat = flat
            self.first = conv(i, o)
            self.down = nn.ModuleList(conv(o if k == 0 else mid, mid, d=2**k if flat else 1) for k in range(depth - 1))
            self.bottom = conv(mid, mid, d=2 ** (depth - 1) if flat else 2)
            self.up = nn.ModuleList(conv(2 * mid, o if k == 0 else mid, d=2**k if flat else 1) for k in range(depth - 1))
            self.pool = nn.MaxPool2d(2, 2, ceil_mode=True)

        def forward(self, x):
            x = self.first(x)
            y, kept = x, []
            for k, layer in enumerate(self.down):
                y = layer(y if k == 0 or self.flat else self.pool(y))
                kept.append(y)
            y = self.bottom(y)
            for layer in reversed(self.up):
                side = kept.pop()
                y = layer(torch.cat([y if self.flat else resized(y, side), side], 1))
            return y + x

    class U2Net(nn.Module):
        """U2-Net of Qin et al., as background removers use it."""

        def __init__(self):
            super().__init__()
            down = [(7, 3, 32, 64), (6, 64, 32, 128), (5, 128, 64, 256), (4, 256, 128, 512), (4, 512, 256, 512, True), (4, 512, 256, 512, True)]
            up = [(7, 128, 16, 64), (6, 256, 32, 64), (5, 512, 64, 128), (4, 1024, 128, 256), (4, 1024, 256, 512, True)]
            self.down, self.up = (nn.ModuleList(RSU(*p) for p in part) for part in (down, up))
            self.side = nn.ModuleList(nn.Conv2d(c, 1, 3, padding=1) for c in (64, 64, 128, 256, 512, 512))
            self.out = nn.Conv2d(6, 1, 1)
            self.pool = nn.MaxPool2d(2, 2, ceil_mode=True)

        def forward(self, x):
            y, kept = x, []
            for k, layer in enumerate(self.down):
                y = layer(y if k == 0 else self.pool(y))
                kept.append(y)
            levels = [kept.pop()]
            for layer in reversed(self.up):
                side = kept.pop()
                levels.append(layer(torch.cat([resized(levels[-1], side), side], 1)))
            sides = [resized(head(level), x) for head, level in zip(self.side, reversed(levels))]
            return torch.sigmoid(self.out(torch.cat(sides, 1)))

    return spread(U2Net(), 1, 3, 320, 320)


def modnet():
    import torch
    import torchvision
    from torch import nn

    class IBNorm(nn.Module):
        """Half of the channels with batch normalisation, half with instance normalisation."""

        def __init__(self, c):
            super().__init__()
            self.half = c // 2
            self.b, self.i = nn.BatchNorm2d(self.half), nn.InstanceNorm2d(c - self.half)

        def forward(self, x):
            return torch.cat([self.b(x[:, : self.half]), self.i(x[:, self.half :])], 1)

    def block(i, o, k=3, s=1):
        return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2), IBNorm(o), nn.ReLU())

    def twice(x, by=2):
        return nn.functional.interpolate(x, scale_factor=by, mode="bilinear", align_corners=False)

    class MODNet(nn.Module):
        """MODNet of Ke et al.: portrait matting in three branches on MobileNetV2."""

        def __init__(self):
            super().__init__()
            self.body = torchvision.models.mobilenet_v2(weights=None).features
            self.squeeze = nn.Sequential(nn.Linear(1280, 320), nn.ReLU(), nn.Linear(320, 1280), nn.Sigmoid())
            self.lr16, self.lr8 = block(1280, 96, 5), block(96, 32, 5)
            self.enc2x, self.to2x = block(16, 32, 1), block(35, 32, 3, 2)
            self.enc4x, self.to4x = block(24, 32, 1), block(64, 64)
            self.hr4 = nn.Sequential(block(99, 64), block(64, 64), block(64, 32))
            self.hr2 = nn.Sequential(block(64, 64), block(64, 32), block(32, 32), block(32, 32))
            self.fuse_lr, self.fuse2 = block(32, 32, 5), block(64, 32)
            self.fuse = nn.Sequential(block(35, 16), nn.Conv2d(16, 1, 1))

        def forward(self, x):
            y, kept = x, {}
            for k, layer in enumerate(self.body):
                y = layer(y)
                kept[k] = y
            y = y * self.squeeze(y.mean((2, 3)))[:, :, None, None]
            low = self.lr8(twice(self.lr16(twice(y))))
            x2, x4 = twice(x, 0.5), twice(x, 0.25)
            high2 = self.enc2x(kept[1])
            high = self.to2x(torch.cat([x2, high2], 1))
            high = self.to4x(torch.cat([self.enc4x(kept[3]), high], 1))
            high = self.hr4(torch.cat([high, twice(low), x4], 1))
            high = self.hr2(torch.cat([twice(high), high2], 1))
            fused = self.fuse2(torch.cat([twice(self.fuse_lr(twice(low))), high], 1))
            return torch.sigmoid(self.fuse(torch.cat([twice(fused), x], 1)))

    return MODNet()


def video_matting():
    import torch
    import torchvision
    from torch import nn

    class Gated(nn.Module):
        """A convolutional GRU on half of the channels, whose state is given."""

        def __init__(self, c, h, w):
            super().__init__()
            self.register_buffer("state", torch.randn(1, c // 2, h, w))
            self.gates, self.new = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c // 2, 3, padding=1)

        def forward(self, x):
            a, b = x.chunk(2, 1)
            r, z = torch.sigmoid(self.gates(torch.cat([b, self.state], 1))).chunk(2, 1)
            new = torch.tanh(self.new(torch.cat([b, r * self.state], 1)))
            return torch.cat([a, (1 - z) * self.state + z * new], 1)

    class RVM(nn.Module):
        """As Robust Video Matting: one frame of 288 x 512 at a half, recurrent decoder, deep guided filter to the full size."""

        def __init__(self, h=288, w=512):
            super().__init__()
            self.body = torchvision.models.mobilenet_v3_large(weights=None, dilated=True).features
            self.aspp1 = conv(960, 128, 1)
            self.aspp2 = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(960, 128, 1, bias=False), nn.Sigmoid())
            self.bottleneck = Gated(128, h // 16, w // 16)
            sizes = [(128 + 40 + 3, 80, 8), (80 + 24 + 3, 40, 4), (40 + 16 + 3, 32, 2)]
            self.steps = nn.ModuleList(nn.Sequential(conv(i, o), Gated(o, h // d, w // d)) for i, o, d in sizes)
            self.last = nn.Sequential(conv(35, 16), conv(16, 16))
            self.head = nn.Conv2d(16, 4, 1)
            self.a = nn.Sequential(nn.Conv2d(24, 16, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 1, bias=False),
                                   nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 4, 1))
            self.box = nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False)

        def forward(self, full):
            x = nn.functional.interpolate(full, scale_factor=0.5, mode="bilinear", align_corners=False)
            y, kept = x, {}
            for k, layer in enumerate(self.body):
                y = layer(y)
                kept[k] = y
            y = self.bottleneck(self.aspp1(y) * self.aspp2(y))
            smaller = [x]
            for _ in range(3):
                smaller.append(nn.functional.avg_pool2d(smaller[-1], 2, 2, ceil_mode=True))
            for step, side, frame in zip(self.steps, (kept[6], kept[3], kept[1]), reversed(smaller[1:])):
                y = nn.functional.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
                y = step(torch.cat([y[:, :, : side.shape[2]], side, frame], 1))
            y = nn.functional.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
            hidden = self.last(torch.cat([y, x], 1))
            out = self.head(hidden)
            base, fine = (torch.cat([t, t.mean(1, keepdim=True)], 1) for t in (x, full))
            mean_x, mean_y = self.box(base), self.box(out)
            covariance, variance = self.box(base * out) - mean_x * mean_y, self.box(base * base) - mean_x * mean_x
            a = self.a(torch.cat([covariance, variance, hidden], 1))
            b = mean_y - a * mean_x
            a, b = (resized(t, full) for t in (a, b))
            out = a * fine + b
            return torch.cat([(out[:, :3] + full).clamp(0, 1), out[:, 3:].clamp(0, 1)], 1)

    return RVM()


def rife():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, i, c):
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(i, c // 2, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(c // 2, c, 3, 2, 1), nn.LeakyReLU(0.2))
            self.body = nn.ModuleList(nn.Conv2d(c, c, 3, padding=1) for _ in range(8))
            self.beta = nn.ParameterList(nn.Parameter(torch.ones(1, c, 1, 1)) for _ in range(8))
            self.last = nn.Sequential(nn.ConvTranspose2d(c, 4 * 6, 4, 2, 1), nn.PixelShuffle(2))

        def forward(self, x, flow, scale):
            def sized(t, by):
                return nn.functional.interpolate(t, scale_factor=by, mode="bilinear", align_corners=False) if by != 1 else t

            x = sized(x, 1 / scale)
            if flow is not None:
                x = torch.cat([x, sized(flow, 1 / scale) / scale], 1)
            x = self.first(x)
            for layer, beta in zip(self.body, self.beta):
                x = nn.functional.leaky_relu(layer(x) * beta + x, 0.2)
            x = sized(self.last(x), scale)
            return x[:, :4] * scale, x[:, 4:5]

    class RIFE(nn.Module):
        """As RIFE 4: the frame between two of 480 x 832, flow from coarse to fine in four blocks, warped by grid_sample."""

        def __init__(self):
            super().__init__()
            self.encode = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 16, 3, padding=1), nn.LeakyReLU(0.2),
                                        nn.ConvTranspose2d(16, 4, 4, 2, 1))
            self.blocks = nn.ModuleList(Block(i, c) for i, c in ((15, 192), (20, 128), (20, 96), (20, 64)))

        def forward(self, x):
            a, b = x[:, :3], x[:, 3:]
            fa, fb = self.encode(a), self.encode(b)
            time = torch.full_like(x[:, :1], 0.5)
            flow = mask = None
            wa, wb = a, b
            for block, scale in zip(self.blocks, (8, 4, 2, 1)):
                if flow is None:
                    flow, mask = block(torch.cat([a, b, fa, fb, time], 1), None, scale)
                else:
                    both = torch.cat([wa, wb, warp(fa, flow[:, :2]), warp(fb, flow[:, 2:]), time, mask], 1)
                    more, mask = block(both, flow, scale)
                    flow = flow + more
                wa, wb = warp(a, flow[:, :2]), warp(b, flow[:, 2:])
            mask = torch.sigmoid(mask)
            return wa * mask + wb * (1 - mask)

    return RIFE()


def raft():
    """RAFT of torchvision, whose coordinates are of the type of its weights."""
    from torchvision.models import optical_flow

    parts = optical_flow.raft
    coordinates, sample = parts.make_coords_grid, parts.grid_sample
    model = optical_flow.raft_small(weights=None)
    parts.make_coords_grid = lambda *a, **k: coordinates(*a, **k).to(next(model.parameters()).dtype)
    parts.grid_sample = lambda x, grid, **k: sample(x, grid.to(x.dtype), **k)
    return model


def arcface():
    from torch import nn

    class Block(nn.Module):
        def __init__(self, i, o, s):
            super().__init__()
            self.body = nn.Sequential(nn.BatchNorm2d(i), nn.Conv2d(i, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.PReLU(o),
                                      nn.Conv2d(o, o, 3, s, 1, bias=False), nn.BatchNorm2d(o))
            self.skip = nn.Sequential(nn.Conv2d(i, o, 1, s, bias=False), nn.BatchNorm2d(o)) if s != 1 or i != o else nn.Identity()

        def forward(self, x):
            return self.body(x) + self.skip(x)

    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64)]
    i = 64
    for o, n in ((64, 3), (128, 4), (256, 14), (512, 3)):
        layers += [Block(i if k == 0 else o, o, 2 if k == 0 else 1) for k in range(n)]
        i = o
    return nn.Sequential(*layers, nn.BatchNorm2d(512), nn.Flatten(), nn.Linear(512 * 49, 512), nn.BatchNorm1d(512))


def retinaface():
    import torch
    from torch import nn

    def separable(i, o, s):
        return nn.Sequential(conv(i, i, 3, s, act="leaky", g=i), conv(i, o, 1, act="leaky"))

    class SSH(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.a = conv(c, c // 2, act="none")
            self.b1, self.b2 = conv(c, c // 4, act="leaky"), conv(c // 4, c // 4, act="none")
            self.c1, self.c2 = conv(c // 4, c // 4, act="leaky"), conv(c // 4, c // 4, act="none")

        def forward(self, x):
            b = self.b1(x)
            return torch.relu(torch.cat([self.a(x), self.b2(b), self.c2(self.c1(b))], 1))

    class RetinaFace(nn.Module):
        """RetinaFace on MobileNet of a quarter of the width: FPN, context modules, three heads at three levels."""

        def __init__(self, c=64):
            super().__init__()
            sizes = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1)], [(128, 2)] + [(128, 1)] * 5, [(256, 2), (256, 1)]
            i, stages = 8, []
            for stage in sizes:
                layers = [] if stages else [conv(3, 8, s=2, act="leaky")]
                for o, s in stage:
                    layers.append(separable(i, o, s))
                    i = o
                stages.append(nn.Sequential(*layers))
            self.stages = nn.ModuleList(stages)
            self.lateral = nn.ModuleList(conv(k, c, 1, act="leaky") for k in (64, 128, 256))
            self.merge = nn.ModuleList(conv(c, c, act="leaky") for _ in range(2))
            self.context = nn.ModuleList(SSH(c) for _ in range(3))
            self.heads = nn.ModuleList(nn.ModuleList(nn.Conv2d(c, 2 * k, 1) for _ in range(3)) for k in (4, 2, 10))

        def forward(self, x):
            levels = []
            for stage, lateral in zip(self.stages, self.lateral):
                x = stage(x)
                levels.append(lateral(x))
            for k in (1, 0):
                up = nn.functional.interpolate(levels[k + 1], size=levels[k].shape[2:], mode="nearest")
                levels[k] = self.merge[k](levels[k] + up)
            levels = [context(level) for context, level in zip(self.context, levels)]
            box, kind, marks = (torch.cat([h(level).permute(0, 2, 3, 1).reshape(level.shape[0], -1, n) for h, level in zip(heads, levels)], 1)
                                for heads, n in zip(self.heads, (4, 2, 10)))
            return torch.cat([box, kind.softmax(-1), marks], 2)

    return RetinaFace()


def lightglue():
    import torch
    from torch import nn

    class Feed(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.f = nn.Sequential(nn.Linear(2 * c, 2 * c), nn.LayerNorm(2 * c), nn.GELU(), nn.Linear(2 * c, c))

        def forward(self, x, message):
            return x + self.f(torch.cat([x, message], -1))

    class Layer(nn.Module):
        def __init__(self, c, heads):
            super().__init__()
            self.heads = heads
            self.qkv, self.o, self.f = nn.Linear(c, 3 * c), nn.Linear(c, c), Feed(c)
            self.qk, self.v, self.o2, self.f2 = nn.Linear(c, c), nn.Linear(c, c), nn.Linear(c, c), Feed(c)

        def split(self, x):
            return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        def forward(self, x, angle):
            q, k, v = self.qkv(x).unflatten(-1, (self.heads, -1, 3)).transpose(1, 2).unbind(-1)
            y = nn.functional.scaled_dot_product_attention(rotated(q, angle), rotated(k, angle), v)
            x = self.f(x, self.o(y.transpose(1, 2).flatten(2)))
            (qk0, qk1), (v0, v1) = (self.split(f(x)).split(1) for f in (self.qk, self.v))
            scores = (qk0 @ qk1.transpose(2, 3)) * qk0.shape[-1] ** -0.5
            y = torch.cat([scores.softmax(-1) @ v1, scores.transpose(2, 3).softmax(-1) @ v0])
            return self.f2(x, self.o2(y.transpose(1, 2).flatten(2)))

    class LightGlue(nn.Module):
        """LightGlue of Lindenberger et al.: the matches of 1024 keypoints with as many of another image, 5 of 9 layers."""

        def __init__(self, n=1024, c=256, heads=4, layers=5):
            super().__init__()
            self.register_buffer("points", torch.rand(2, n, 2) * 2 - 1)
            self.place = nn.Linear(2, c // heads // 2, bias=False)
            self.layers = nn.ModuleList(Layer(c, heads) for _ in range(layers))
            self.proj, self.found = nn.Linear(c, c), nn.Linear(c, 1)

        def forward(self, x):
            angle = self.place(self.points)[:, None]
            for layer in self.layers:
                x = layer(x, angle)
            a, b = self.proj(x).split(1)
            scores = a @ b.transpose(1, 2) / 16
            found = nn.functional.logsigmoid(self.found(x))
            return scores.log_softmax(2) + scores.log_softmax(1) + found[:1] + found[1:].transpose(1, 2)

    return LightGlue()


def ddcolor():
    import torch
    import torchvision
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.cross, self.self_ = nn.MultiheadAttention(c, 8, batch_first=True), nn.MultiheadAttention(c, 8, batch_first=True)
            self.n1, self.n2, self.n3 = nn.LayerNorm(c), nn.LayerNorm(c), nn.LayerNorm(c)
            self.f = nn.Sequential(nn.Linear(c, 2048), nn.ReLU(), nn.Linear(2048, c))

        def forward(self, q, place, x, where):
            q = self.n1(q + self.cross(q + place, x + where, x, need_weights=False)[0])
            q = self.n2(q + self.self_(q + place, q + place, q, need_weights=False)[0])
            return self.n3(q + self.f(q))

    class Up(nn.Module):
        """Pixel shuffle with a blur, then the skip."""

        def __init__(self, i, skip, o):
            super().__init__()
            self.shuffle = nn.Sequential(nn.Conv2d(i, 4 * o, 1), nn.BatchNorm2d(4 * o), nn.PixelShuffle(2), nn.ReLU(),
                                         nn.ReplicationPad2d((1, 0, 1, 0)), nn.AvgPool2d(2, stride=1))
            self.norm, self.out = nn.BatchNorm2d(skip), nn.Sequential(nn.Conv2d(o + skip, o, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(o))

        def forward(self, x, skip):
            return self.out(torch.relu(torch.cat([self.shuffle(x), self.norm(skip)], 1)))

    class DDColor(nn.Module):
        """As DDColor: ConvNeXt, pixel decoder, 100 colour queries over three scales, multiplied by einsum."""

        def __init__(self, c=256, size=512):
            super().__init__()
            self.body = torchvision.models.convnext_tiny(weights=None).features
            self.ups = nn.ModuleList([Up(768, 384, 512), Up(512, 192, 512), Up(512, 96, 256)])
            self.last = nn.Sequential(nn.Conv2d(256, 4096, 1), nn.PixelShuffle(4), nn.ReLU())
            self.ins = nn.ModuleList(nn.Conv2d(k, c, 1) for k in (512, 512, 256))
            self.query, self.place = nn.Parameter(torch.randn(1, 100, c)), nn.Parameter(torch.randn(1, 100, c))
            self.level = nn.Parameter(torch.randn(3, c))
            self.where = nn.ParameterList(nn.Parameter(torch.randn(1, (size // d) ** 2, c)) for d in (16, 8, 4))
            self.layers = nn.ModuleList(Layer(c) for _ in range(6))
            self.norm, self.color = nn.LayerNorm(c), nn.Sequential(nn.Linear(c, c), nn.ReLU(), nn.Linear(c, c), nn.ReLU(), nn.Linear(c, c))
            self.refine = nn.Conv2d(103, 2, 1)

        def forward(self, x):
            y, kept = x, []
            for k, layer in enumerate(self.body):
                y = layer(y)
                if k % 2:
                    kept.append(y)
            maps = []
            for up, skip in zip(self.ups, kept[2::-1]):
                y = up(y, skip)
                maps.append(y)
            y = self.last(y)
            tokens = [(f(m).flatten(2).transpose(1, 2) + level) for f, m, level in zip(self.ins, maps, self.level)]
            q = self.query
            for k, layer in enumerate(self.layers):
                q = layer(q, self.place, tokens[k % 3], self.where[k % 3])
            y = torch.einsum("bqc,bchw->bqhw", self.color(self.norm(q)), y)
            return self.refine(torch.cat([y, x], 1))

    return DDColor()


def restormer():
    import torch
    from torch import nn

    class Norm(nn.Module):
        """Layer normalisation of the channels, whose mean stays."""

        def __init__(self, c):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(c))

        def forward(self, x):
            y = x.permute(0, 2, 3, 1)
            y = y / torch.sqrt(y.var(-1, keepdim=True, unbiased=False) + 1e-5) * self.weight
            return y.permute(0, 3, 1, 2)

    class Block(nn.Module):
        """Attention of the channels to one another, and a gated depthwise feed-forward."""

        def __init__(self, c, heads):
            super().__init__()
            wide = int(c * 2.66)
            self.heads, self.heat = heads, nn.Parameter(torch.ones(heads, 1, 1))
            self.n1, self.n2 = Norm(c), Norm(c)
            self.qkv = nn.Sequential(nn.Conv2d(c, 3 * c, 1, bias=False), nn.Conv2d(3 * c, 3 * c, 3, padding=1, groups=3 * c, bias=False))
            self.o = nn.Conv2d(c, c, 1, bias=False)
            self.up = nn.Sequential(nn.Conv2d(c, 2 * wide, 1, bias=False), nn.Conv2d(2 * wide, 2 * wide, 3, padding=1, groups=2 * wide, bias=False))
            self.down = nn.Conv2d(wide, c, 1, bias=False)

        def forward(self, x):
            q, k, v = (t.flatten(2).unflatten(1, (self.heads, -1)) for t in self.qkv(self.n1(x)).chunk(3, 1))
            q, k = nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1)
            y = ((q @ k.transpose(2, 3)) * self.heat).softmax(-1) @ v
            x = x + self.o(y.reshape(x.shape))
            a, b = self.up(self.n2(x)).chunk(2, 1)
            return x + self.down(nn.functional.gelu(a) * b)

    class Restormer(nn.Module):
        def __init__(self, c=48, blocks=(2, 2, 2, 3)):
            super().__init__()
            def stage(k, n, level):
                return nn.Sequential(*(Block(k, 2**level) for _ in range(n)))

            self.first, self.last = nn.Conv2d(3, c, 3, padding=1, bias=False), nn.Conv2d(2 * c, 3, 3, padding=1, bias=False)
            self.enc = nn.ModuleList(stage(c * 2**k, n, k) for k, n in enumerate(blocks))
            self.down = nn.ModuleList(nn.Sequential(nn.Conv2d(w, w // 2, 3, padding=1, bias=False), nn.PixelUnshuffle(2)) for w in (c, 2 * c, 4 * c))
            self.up = nn.ModuleList(nn.Sequential(nn.Conv2d(w, 2 * w, 3, padding=1, bias=False), nn.PixelShuffle(2)) for w in (2 * c, 4 * c, 8 * c))
            self.less = nn.ModuleList([nn.Identity(), nn.Conv2d(4 * c, 2 * c, 1, bias=False), nn.Conv2d(8 * c, 4 * c, 1, bias=False)])
            self.dec = nn.ModuleList(stage(w, n, k) for k, (w, n) in enumerate(zip((2 * c, 2 * c, 4 * c), blocks)))
            self.refine = stage(2 * c, 2, 0)

        def forward(self, x):
            y, kept = self.first(x), []
            for k, stage in enumerate(self.enc):
                y = stage(y)
                if k < 3:
                    kept.append(y)
                    y = self.down[k](y)
            for k in (2, 1, 0):
                y = self.dec[k](self.less[k](torch.cat([self.up[k](y), kept[k]], 1)))
            return self.last(self.refine(y)) + x

    return Restormer()


def stereo():
    import torch
    from torch import nn

    def solid(i, o, s=1):
        return nn.Sequential(nn.Conv3d(i, o, 3, s, 1, bias=False), nn.BatchNorm3d(o), nn.ReLU())

    class Stereo(nn.Module):
        """As GwcNet: features at a quarter, group-wise correlation at 24 distances, a 3-D hourglass, a soft arg-max."""

        def __init__(self, distances=24, groups=16):
            super().__init__()
            self.n, self.g = distances, groups
            self.features = nn.Sequential(conv(3, 32, s=2), conv(32, 32), conv(32, 64, s=2), conv(64, 64), conv(64, 128, d=2), conv(128, 128))
            self.a = solid(groups, 32)
            self.b, self.c = nn.Sequential(solid(32, 64, 2), solid(64, 64)), nn.Sequential(solid(64, 128, 2), solid(128, 128))
            self.up1 = nn.Sequential(nn.ConvTranspose3d(128, 64, 3, 2, 1, 1, bias=False), nn.BatchNorm3d(64))
            self.up2 = nn.Sequential(nn.ConvTranspose3d(64, 32, 3, 2, 1, 1, bias=False), nn.BatchNorm3d(32))
            self.out = nn.Conv3d(32, 1, 3, padding=1)

        def forward(self, x):
            left, right = self.features(torch.cat([x[:, :3], x[:, 3:]])).unflatten(1, (self.g, -1)).chunk(2)
            volume = []
            for k in range(self.n):
                product = (left[..., k:] * right[..., : right.shape[-1] - k]).mean(2)
                volume.append(nn.functional.pad(product, (k, 0)))
            a = self.a(torch.stack(volume, 2))
            b = self.b(a)
            y = torch.relu(self.up1(self.c(b)) + b)
            y = self.out(torch.relu(self.up2(y) + a))
            y = nn.functional.interpolate(y, scale_factor=4, mode="trilinear", align_corners=False)[:, 0].softmax(1)
            return (y * torch.arange(y.shape[1], device=y.device, dtype=y.dtype)[:, None, None]).sum(1)

    return spread(Stereo(), 1, 6, 256, 512)


def lama():
    """LaMa of spandrel, whose Fourier transforms are in float32 in any case."""
    import torch

    def transformed(unit, x):
        b, c, h, w = x.shape
        y = torch.fft.rfftn(x.float(), dim=(-2, -1), norm="ortho")
        y = torch.stack([y.real, y.imag], 2).flatten(1, 2).to(x.dtype)
        y = unit.relu(unit.bn(unit.conv_layer(y))).unflatten(1, (-1, 2)).float()
        return torch.fft.irfftn(torch.complex(y[:, :, 0], y[:, :, 1]), s=(h, w), dim=(-2, -1), norm="ortho").to(x.dtype)

    model = restorer("LaMa", "LaMa", 256, in_nc=4)[0]()
    for m in model.modules():
        if type(m).__name__ == "FourierUnit":
            type(m).forward = transformed
    return model
