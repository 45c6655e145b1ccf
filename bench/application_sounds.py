# SPDX-License-Identifier: Apache-2.0
"""Networks of application_models.py for sound and speech, written here: no package that is at hand has them."""


def inverse_stft(size, hop):
    """Frames of magnitude and phase to samples by a transposed convolution with the windowed inverse DFT, as exported vocoders have it."""
    import math

    import torch
    from torch import nn

    class Inverse(nn.Module):
        def __init__(self):
            super().__init__()
            bins = size // 2 + 1
            angle = 2 * math.pi / size * torch.arange(bins)[:, None] * torch.arange(size)
            weight = torch.full((bins, 1), 2 / size)
            weight[0] = weight[-1] = 1 / size
            window = torch.hann_window(size)
            self.register_buffer("basis", torch.cat([weight * angle.cos() * window, -weight * angle.sin() * window])[:, None])
            self.register_buffer("square", (window**2)[None, None])

        def forward(self, size_, phase):
            parts = torch.cat([size_ * phase.cos(), size_ * phase.sin()], 1)
            ones = torch.ones_like(parts[:1, :1])
            samples = nn.functional.conv_transpose1d(parts, self.basis, stride=hop)
            samples = samples / nn.functional.conv_transpose1d(ones, self.square, stride=hop).clamp_min(1e-3)
            return samples[..., size // 2 : -(size // 2)]

    return Inverse()


def kokoro_decoder():
    import torch
    from torch import nn

    class AdaIN(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.norm, self.fc = nn.InstanceNorm1d(c, affine=True), nn.Linear(128, 2 * c)

        def forward(self, x, style):
            scale, shift = self.fc(style)[:, :, None].chunk(2, 1)
            return (1 + scale) * self.norm(x) + shift

    class Block(nn.Module):
        """The residual block of the decoder; `up` doubles the length."""

        def __init__(self, i, o, up=False):
            super().__init__()
            self.n1, self.n2 = AdaIN(i), AdaIN(o)
            self.c1, self.c2 = nn.Conv1d(i, o, 3, padding=1), nn.Conv1d(o, o, 3, padding=1)
            self.pool = nn.ConvTranspose1d(i, i, 3, 2, 1, 1, groups=i) if up else nn.Identity()
            self.skip = nn.Conv1d(i, o, 1, bias=False) if i != o else nn.Identity()
            self.up = up

        def forward(self, x, style):
            y = self.c1(self.pool(nn.functional.leaky_relu(self.n1(x, style), 0.2)))
            y = self.c2(nn.functional.leaky_relu(self.n2(y, style), 0.2))
            if self.up:
                x = nn.functional.interpolate(x, scale_factor=2, mode="nearest")
            return (y + self.skip(x)) * 0.5**0.5

    class Snake(nn.Module):
        """The residual block of the generator: AdaIN, snake activation, dilated convolutions."""

        def __init__(self, c, k):
            super().__init__()
            self.c1 = nn.ModuleList(nn.Conv1d(c, c, k, padding=d * (k // 2), dilation=d) for d in (1, 3, 5))
            self.c2 = nn.ModuleList(nn.Conv1d(c, c, k, padding=k // 2) for _ in range(3))
            self.n1, self.n2 = (nn.ModuleList(AdaIN(c) for _ in range(3)) for _ in range(2))
            self.a1, self.a2 = (nn.ParameterList(nn.Parameter(torch.ones(1, c, 1)) for _ in range(3)) for _ in range(2))

        def forward(self, x, style):
            for c1, c2, n1, n2, a1, a2 in zip(self.c1, self.c2, self.n1, self.n2, self.a1, self.a2):
                y = n1(x, style)
                y = n2(c1(y + torch.sin(a1 * y) ** 2 / a1), style)
                x = x + c2(y + torch.sin(a2 * y) ** 2 / a2)
            return x

    class Decoder(nn.Module):
        """As Kokoro's (StyleTTS 2 with an iSTFT head): aligned text features, pitch and noise to samples."""

        def __init__(self, frames=80):
            super().__init__()
            sizes = {"style": (1, 128), "pitch": (1, 1, 2 * frames), "noise": (1, 1, 2 * frames), "source": (1, 22, 120 * frames + 1)}
            for key, shape in sizes.items():
                self.register_buffer(key, torch.randn(*shape))
            self.pitch_conv, self.noise_conv = (nn.Conv1d(1, 1, 3, 2, 1) for _ in range(2))
            self.encode, self.residual = Block(514, 1024), nn.Conv1d(512, 64, 1)
            self.decode = nn.ModuleList([Block(1024 + 66, 1024), Block(1024 + 66, 1024), Block(1024 + 66, 1024), Block(1024 + 66, 512, True)])
            self.ups = nn.ModuleList([nn.ConvTranspose1d(512, 256, 20, 10, 5), nn.ConvTranspose1d(256, 128, 12, 6, 3)])
            self.source_convs = nn.ModuleList([nn.Conv1d(22, 256, 12, 6, 3), nn.Conv1d(22, 128, 1)])
            self.source_blocks = nn.ModuleList([Snake(256, 7), Snake(128, 11)])
            self.blocks = nn.ModuleList(nn.ModuleList(Snake(c, k) for k in (3, 7, 11)) for c in (256, 128))
            self.last, self.inverse = nn.Conv1d(128, 22, 7, padding=3), inverse_stft(20, 5)

        def forward(self, x):
            pitch, noise = self.pitch_conv(self.pitch), self.noise_conv(self.noise)
            y, residual = self.encode(torch.cat([x, pitch, noise], 1), self.style), self.residual(x)
            for block in self.decode:
                y = block(torch.cat([y, residual, pitch, noise], 1), self.style)
            for k, (up, convert, source, blocks) in enumerate(zip(self.ups, self.source_convs, self.source_blocks, self.blocks)):
                side = source(convert(self.source), self.style)
                y = up(nn.functional.leaky_relu(y, 0.1))
                if k == 1:
                    y = nn.functional.pad(y, (1, 0), mode="reflect")
                y = y + side
                y = sum(block(y, self.style) for block in blocks) / 3
            y = self.last(nn.functional.leaky_relu(y))
            return self.inverse(torch.exp(y[:, :11].clamp_max(5)), torch.sin(y[:, 11:]))

    return Decoder()


def vocos():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, c, wide):
            super().__init__()
            self.depth, self.norm = nn.Conv1d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, eps=1e-6)
            self.up, self.down, self.scale = nn.Linear(c, wide), nn.Linear(wide, c), nn.Parameter(torch.full((c,), 0.125))

        def forward(self, x):
            y = self.norm(self.depth(x).transpose(1, 2))
            return x + (self.scale * self.down(nn.functional.gelu(self.up(y)))).transpose(1, 2)

    class Vocos(nn.Module):
        """Vocos of Siuzdak: mel frames, ConvNeXt blocks, iSTFT of 1024 with hop 256."""

        def __init__(self, c=512):
            super().__init__()
            self.embed, self.norm, self.last = nn.Conv1d(100, c, 7, padding=3), nn.LayerNorm(c, eps=1e-6), nn.LayerNorm(c, eps=1e-6)
            self.blocks = nn.Sequential(*(Block(c, 1536) for _ in range(8)))
            self.out, self.inverse = nn.Linear(c, 1026), inverse_stft(1024, 256)

        def forward(self, x):
            y = self.blocks(self.norm(self.embed(x).transpose(1, 2)).transpose(1, 2))
            size, phase = self.out(self.last(y.transpose(1, 2))).transpose(1, 2).chunk(2, 1)
            return self.inverse(torch.exp(size).clamp_max(100), phase)

    return Vocos()


def rotated(x, angle):
    """Rotary position embedding of pairs side by side; angle: (length, half of the last dimension)."""
    import torch

    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1).flatten(-2)


def angles(length, dim):
    import torch

    return torch.arange(length)[:, None] * 10000 ** (-torch.arange(0, dim, 2) / dim)


def f5_tts():
    import math

    import torch
    from torch import nn

    class TextBlock(nn.Module):
        """ConvNeXt V2 with global response normalisation, over time."""

        def __init__(self, c):
            super().__init__()
            self.depth, self.norm = nn.Conv1d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, eps=1e-6)
            self.up, self.down = nn.Linear(c, 2 * c), nn.Linear(2 * c, c)
            self.gamma, self.beta = nn.Parameter(torch.ones(2 * c)), nn.Parameter(torch.zeros(2 * c))

        def forward(self, x):
            y = nn.functional.gelu(self.up(self.norm(self.depth(x.transpose(1, 2)).transpose(1, 2))))
            size = y.float().norm(dim=1, keepdim=True)
            size = (size / (size.mean(-1, keepdim=True) + 1e-6)).to(y.dtype)
            return x + self.down(self.gamma * (y * size) + self.beta + y)

    class Block(nn.Module):
        def __init__(self, c, heads):
            super().__init__()
            self.heads, self.mod = heads, nn.Linear(c, 6 * c)
            self.norm = nn.LayerNorm(c, eps=1e-6, elementwise_affine=False)
            self.q, self.k, self.v, self.o = (nn.Linear(c, c) for _ in range(4))
            self.ff = nn.Sequential(nn.Linear(c, 2 * c), nn.GELU(approximate="tanh"), nn.Linear(2 * c, c))

        def forward(self, x, t, angle):
            shift, scale, gate, shift2, scale2, gate2 = self.mod(nn.functional.silu(t))[:, None].chunk(6, -1)
            y = self.norm(x) * (1 + scale) + shift
            q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
            y = nn.functional.scaled_dot_product_attention(rotated(q, angle), rotated(k, angle), v)
            x = x + gate * self.o(y.transpose(1, 2).flatten(2))
            return x + gate2 * self.ff(self.norm(x) * (1 + scale2) + shift2)

    class F5(nn.Module):
        """As F5-TTS: two mel spectrograms of 400 frames with text in, a step of flow matching out."""

        def __init__(self, c=1024, heads=16, length=400, layers=4):
            super().__init__()
            self.register_buffer("ids", torch.randint(0, 2545, (2, length)))
            self.register_buffer("known", torch.randn(2, length, 100))
            self.register_buffer("time", torch.full((2,), 0.3))
            self.register_buffer("angle", angles(length, c // heads))
            self.embed, self.text = nn.Embedding(2546, 512), nn.Sequential(*(TextBlock(512) for _ in range(4)))
            self.proj = nn.Linear(712, c)
            self.place = nn.Sequential(*(m for _ in range(2) for m in (nn.Conv1d(c, c, 31, padding=15, groups=16), nn.Mish())))
            self.step = nn.Sequential(nn.Linear(256, c), nn.SiLU(), nn.Linear(c, c))
            self.blocks = nn.ModuleList(Block(c, heads) for _ in range(layers))
            self.norm, self.mod, self.out = nn.LayerNorm(c, eps=1e-6, elementwise_affine=False), nn.Linear(c, 2 * c), nn.Linear(c, 100)

        def forward(self, x):
            t = 1000 * self.time[:, None] * torch.exp(-math.log(10000) / 127 * torch.arange(128, device=x.device)).to(x.dtype)
            t = self.step(torch.cat([t.sin(), t.cos()], -1))
            y = self.proj(torch.cat([x, self.known, self.text(self.embed(self.ids))], -1))
            y = y + self.place(y.transpose(1, 2)).transpose(1, 2)
            for block in self.blocks:
                y = block(y, t, self.angle)
            scale, shift = self.mod(nn.functional.silu(t))[:, None].chunk(2, -1)
            return self.out(self.norm(y) * (1 + scale) + shift)

    return F5()


def zipformer():
    import torch
    from torch import nn

    def swoosh(x, shift, offset):
        return nn.functional.softplus(x - shift) - 0.08 * x - offset

    class BiasNorm(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.bias, self.scale = nn.Parameter(torch.randn(c) * 0.1), nn.Parameter(torch.zeros(()))

        def forward(self, x):
            return x * ((x - self.bias) ** 2).mean(-1, keepdim=True).rsqrt() * self.scale.exp()

    class Feed(nn.Module):
        def __init__(self, c, wide):
            super().__init__()
            self.up, self.down = nn.Linear(c, wide), nn.Linear(wide, c)

        def forward(self, x):
            return self.down(swoosh(self.up(x), 4.0, 0.035))

    class Convolution(nn.Module):
        def __init__(self, c, k):
            super().__init__()
            self.i, self.depth, self.o = nn.Linear(c, 2 * c), nn.Conv1d(c, c, k, padding=k // 2, groups=c), nn.Linear(c, c)

        def forward(self, x):
            y = nn.functional.glu(self.i(x)).transpose(1, 2)
            return self.o(swoosh(self.depth(y).transpose(1, 2), 1.0, 0.313261687))

    class Layer(nn.Module):
        """Attention weights once, used by two value projections and by a gated one; a bypass with a learnt share."""

        def __init__(self, c, heads, wide, k, length):
            super().__init__()
            self.heads, self.length = heads, length
            self.qk, self.place = nn.Linear(c, heads * 68), nn.Linear(48, heads * 4, bias=False)
            self.register_buffer("far", torch.randn(2 * length - 1, 48))
            self.v1, self.v2 = nn.Linear(c, heads * 12), nn.Linear(c, heads * 12)
            self.o1, self.o2 = nn.Linear(heads * 12, c), nn.Linear(heads * 12, c)
            self.gated, self.gated_out = nn.Linear(c, 3 * (c * 3 // 4)), nn.Linear(c * 3 // 4, c)
            self.f = nn.ModuleList(Feed(c, w) for w in (wide * 3 // 4, wide, wide * 5 // 4))
            self.c = nn.ModuleList(Convolution(c, k) for _ in range(2))
            self.norm, self.share = BiasNorm(c), nn.Parameter(torch.full((c,), 0.5))

        def forward(self, x):
            n, h = self.length, self.heads
            q, k, p = self.qk(x).split([h * 32, h * 32, h * 4], -1)
            q, k, p = (t.unflatten(-1, (h, -1)).transpose(1, 2) for t in (q, k, p))
            far = p @ self.place(self.far).unflatten(-1, (h, 4)).permute(1, 2, 0)
            # The scores of distances, turned into those of positions: a row more each row.
            far = nn.functional.pad(far, (0, 1)).flatten(2)[:, :, n - 1 : n - 1 + n * (2 * n - 1)].unflatten(-1, (n, 2 * n - 1))[..., :n]
            weights = (q @ k.transpose(2, 3) + far).softmax(-1)

            def attended(v, o):
                return o((weights @ v(y).unflatten(-1, (h, -1)).transpose(1, 2)).transpose(1, 2).flatten(2))

            y = x + self.f[0](x)
            s, g, b = self.gated(y).chunk(3, -1)
            y = y + self.gated_out(b * (weights[:, 0] @ (g * s.tanh())))
            y = y + attended(self.v1, self.o1)
            y = y + self.c[0](y)
            y = y + self.f[1](y)
            y = x + (y - x) * self.share
            y = y + attended(self.v2, self.o2)
            y = y + self.c[1](y)
            y = self.norm(y + self.f[2](y))
            return x + (y - x) * self.share

    class Zipformer(nn.Module):
        """As Zipformer's encoder: 800 frames of 80, stacks at several frame rates with widths of their own."""

        def __init__(self):
            super().__init__()
            self.embed = nn.ModuleList([nn.Conv2d(1, 8, 3, padding=(0, 1)), nn.Conv2d(8, 32, 3, 2), nn.Conv2d(32, 128, 3, (1, 2))])
            self.depth, self.up, self.down = nn.Conv2d(128, 128, 7, padding=3, groups=128), nn.Conv2d(128, 384, 1), nn.Conv2d(384, 128, 1)
            self.proj, self.norm = nn.Linear(128 * 19, 192), BiasNorm(192)
            self.rates, self.widths = (1, 2, 4, 8, 4, 2), (192, 256, 384, 512, 384, 256)
            self.stacks, self.shares = nn.ModuleList(), nn.ParameterList()
            for rate, c, heads, k in zip(self.rates, self.widths, (4, 4, 4, 8, 4, 4), (31, 31, 15, 15, 15, 31)):
                self.stacks.append(nn.Sequential(*(Layer(c, heads, 3 * c, k, -(-396 // rate)) for _ in range(2))))
                self.shares.append(nn.Parameter(torch.randn(rate)))

        def forward(self, x):
            y = x[:, None]
            for layer in self.embed:
                y = swoosh(layer(y), 1.0, 0.313261687)
            y = y + self.down(swoosh(self.up(self.depth(y)), 4.0, 0.035))
            y = self.norm(self.proj(y.transpose(1, 2).flatten(2)))
            kept = []
            for stack, rate, c, share in zip(self.stacks, self.rates, self.widths, self.shares):
                y = nn.functional.pad(y, (0, c - y.shape[-1])) if c > y.shape[-1] else y[..., :c]
                z, n = y, y.shape[1]
                if rate > 1:
                    last = y[:, -1:].expand(-1, -n % rate, -1)
                    z = (torch.cat([y, last], 1).unflatten(1, (-1, rate)) * share.softmax(0)[:, None]).sum(2)
                z = stack(z)
                if rate > 1:
                    z = z[:, :, None].expand(-1, -1, rate, -1).flatten(1, 2)[:, :n]
                y = z
                kept.append(y)
            y = torch.cat([kept[3], kept[4][..., 256:384], kept[5][..., :128]], -1)
            n = y.shape[1]
            return torch.cat([y, y[:, -1:]], 1).unflatten(1, (-1, 2)).mean(2) if n % 2 else y.unflatten(1, (-1, 2)).mean(2)

    return Zipformer()


def band_roformer():
    import torch
    from torch import nn

    class Norm(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.scale, self.gamma = c**0.5, nn.Parameter(torch.ones(c))

        def forward(self, x):
            return nn.functional.normalize(x, dim=-1) * self.scale * self.gamma

    class Attend(nn.Module):
        def __init__(self, c, length, heads=8, size=64):
            super().__init__()
            self.heads = heads
            self.register_buffer("angle", angles(length, size))
            self.n1, self.n2 = Norm(c), Norm(c)
            self.qkv, self.gates, self.o = nn.Linear(c, 3 * heads * size, bias=False), nn.Linear(c, heads), nn.Linear(heads * size, c, bias=False)
            self.f = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c))

        def forward(self, x):
            y = self.n1(x)
            q, k, v = self.qkv(y).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
            z = nn.functional.scaled_dot_product_attention(rotated(q, self.angle), rotated(k, self.angle), v)
            z = z * torch.sigmoid(self.gates(y)).transpose(1, 2)[..., None]
            x = x + self.o(z.transpose(1, 2).flatten(2))
            return x + self.f(self.n2(x))

    class BandRoformer(nn.Module):
        """As BS-RoFormer, the separator of voice and music: 100 frames of 1025 bins in two channels, split into 62 bands."""

        def __init__(self, c=256, frames=100, depth=2):
            super().__init__()
            self.bands = [4 * n for n in [2] * 24 + [4] * 12 + [12] * 8 + [24] * 8 + [48] * 8 + [128, 129]]
            self.ins = nn.ModuleList(nn.Sequential(Norm(n), nn.Linear(n, c)) for n in self.bands)
            self.time = nn.ModuleList(Attend(c, frames) for _ in range(depth))
            self.tone = nn.ModuleList(Attend(c, len(self.bands)) for _ in range(depth))
            self.norm = Norm(c)
            self.outs = nn.ModuleList(nn.Sequential(nn.Linear(c, 4 * c), nn.Tanh(), nn.Linear(4 * c, 2 * n), nn.GLU()) for n in self.bands)

        def forward(self, x):
            y = torch.stack([f(part) for f, part in zip(self.ins, x.split(self.bands, -1))], 2)
            for time, tone in zip(self.time, self.tone):
                b, t, n, c = y.shape
                y = time(y.transpose(1, 2).reshape(b * n, t, c)).reshape(b, n, t, c).transpose(1, 2)
                y = tone(y.reshape(b * t, n, c)).reshape(b, t, n, c)
            y = self.norm(y)
            mask = torch.cat([f(part) for f, part in zip(self.outs, y.unbind(2))], -1).unflatten(-1, (-1, 2))
            x = x.unflatten(-1, (-1, 2))
            real = x[..., 0] * mask[..., 0] - x[..., 1] * mask[..., 1]
            return torch.stack([real, x[..., 0] * mask[..., 1] + x[..., 1] * mask[..., 0]], -1)

    return BandRoformer()


def denoiser():
    import torch
    from torch import nn

    class Grouped(nn.Module):
        """A linear layer in groups, by einsum."""

        def __init__(self, i, o, g=8):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(g, i // g, o // g) * (g / i) ** 0.5)

        def forward(self, x):
            return torch.relu(torch.einsum("btgi,gih->btgh", x.unflatten(-1, (self.weight.shape[0], -1)), self.weight).flatten(2))

    def layer(i, o, k=(1, 3), s=1, up=False):
        g = 1 if i < 8 else o
        main = nn.ConvTranspose2d(i, o, k, (1, 2), (0, 1), (0, 1), groups=g) if up else nn.Conv2d(i, o, k, (1, s), (0, 1), groups=g)
        return nn.Sequential(nn.ZeroPad2d((0, 0, k[0] - 1, 0)), main, nn.Conv2d(o, o, 1), nn.BatchNorm2d(o), nn.ReLU())

    class DeepFilter(nn.Module):
        """As DeepFilterNet's: 200 frames of 32 bands, a causal encoder, grouped linear layers, GRUs, gains and filter taps."""

        def __init__(self):
            super().__init__()
            self.e0, self.e1, self.e2, self.e3 = layer(1, 64, (3, 3)), layer(64, 64, s=2), layer(64, 64, s=2), layer(64, 64)
            self.i, self.o = Grouped(512, 256), Grouped(256, 512)
            self.gru, self.gru2, self.gru3 = (nn.GRU(256, 256, n, batch_first=True) for n in (1, 2, 2))
            self.skip = nn.ModuleList(nn.Conv2d(64, 64, 1, groups=64) for _ in range(4))
            self.d3, self.d2, self.d1 = layer(64, 64), layer(64, 64, up=True), layer(64, 64, up=True)
            self.d0, self.taps = nn.Conv2d(64, 1, (1, 3), padding=(0, 1)), nn.Linear(256, 32 * 10)

        def forward(self, x):
            e0 = self.e0(x)
            e1 = self.e1(e0)
            e2 = self.e2(e1)
            e3 = self.e3(e2)
            hidden = self.gru(self.i(e3.transpose(1, 2).flatten(2)))[0]
            y = self.o(self.gru2(hidden)[0]).unflatten(-1, (64, -1)).transpose(1, 2)
            y = self.d3(y + self.skip[3](e3))
            y = self.d2(y + self.skip[2](e2))
            y = self.d1(y + self.skip[1](e1))
            gain = torch.sigmoid(self.d0(y + self.skip[0](e0)))
            taps = torch.tanh(self.taps(self.gru3(hidden)[0])).unflatten(-1, (32, 10))
            frames = nn.functional.pad(x[:, 0], (0, 0, 9, 0))
            frames = torch.stack([frames[:, k : k + x.shape[2]] for k in range(10)], -1)
            return (frames * taps).sum(-1) * gain[:, 0]

    return DeepFilter()
