# SPDX-License-Identifier: Apache-2.0
"""Makers of models for gpu_wide.py: each gives a function that makes one in float32 with random weights, and its one
input as {name: (f for floats or i for token ids, shape)}; an input named x is given by position."""


def vision(name, size=224, batch=1, **options):
    """A classifier or segmenter of torchvision, by the name of its function."""

    def make():
        import torchvision

        found = getattr(torchvision.models, name, None) or getattr(torchvision.models.segmentation, name)
        return found(weights=None, **options)

    return make, {"x": ("f", (batch, 3, size, size))}


def segmentation(name, size=512):
    make, inputs = vision(name, size, weights_backbone=None)
    return make, inputs


def zoo(name, size=224, batch=1):
    """A classifier of timm."""

    def make():
        import timm

        return timm.create_model(name, pretrained=False)

    return make, {"x": ("f", (batch, 3, size, size))}


def video(name, size, frames=16):
    def make():
        import torchvision

        return getattr(torchvision.models.video, name)(weights=None)

    return make, {"x": ("f", (1, 3, frames, size, size))}


def text(model, config, length=128, batch=1, **options):
    """A text model of transformers with its configuration's default sizes, but for `options`."""

    def make():
        import transformers

        return getattr(transformers, model)(getattr(transformers, config)(**options))

    return make, {"input_ids": ("i", (batch, length))}


def image(model, config, size=224, batch=1, **options):
    make, _ = text(model, config, **options)
    return make, {"pixel_values": ("f", (batch, 3, size, size))}


def speech(model, config, name, shape, **options):
    make, _ = text(model, config, **options)
    return make, {name: ("f", shape)}


class Number(float):
    """A mean colour as one number: torch.onnx does not export the tensors that some models keep as plain attributes."""

    def type_as(self, _):
        return self

    to = type_as


def with_numbers(model):
    import torch

    for key, value in list(vars(model).items()):
        if isinstance(value, torch.Tensor):
            setattr(model, key, Number(value.mean()))
    return model


def restorer(folder, name, size, channels=3, **options):
    """A super-resolution or restoration network of spandrel, by its folder and class."""

    def make():
        import importlib
        import pkgutil

        package = importlib.import_module(f"spandrel.architectures.{folder}.__arch")
        for module in pkgutil.iter_modules(package.__path__):
            found = getattr(importlib.import_module(f"{package.__name__}.{module.name}"), name, None)
            if found:
                return with_numbers(found(**options))
        raise RuntimeError(f"spandrel has no {folder}.{name}")

    return make, {"x": ("f", (1, channels, size, size))}


def diffusion(name, size, fixed, **options):
    """A denoiser of diffusers; `fixed` has its other inputs, which are constants."""

    def make():
        import diffusers
        import torch

        class Denoiser(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = getattr(diffusers, name)(**options)
                for key, (kind, shape) in fixed.items():
                    self.register_buffer(key, torch.randn(*shape) if kind == "f" else torch.full(shape, 7))

            def forward(self, x):
                return self.model(x, **{key: getattr(self, key) for key in fixed}, return_dict=False)[0]

        return Denoiser()

    return make, {"x": ("f", size)}


def image_decoder(name, size=64, **options):
    def make():
        import diffusers

        return getattr(diffusers, name)(**options).decoder

    return make, {"x": ("f", (1, 4, size, size))}


def whisper_encoder():
    def make():
        import transformers

        return transformers.WhisperModel(
            transformers.WhisperConfig(
                d_model=512,
                encoder_layers=6,
                encoder_attention_heads=8,
                encoder_ffn_dim=2048,
                decoder_layers=1,
                decoder_attention_heads=8,
                decoder_ffn_dim=2048,
            )
        ).encoder

    return make, {"input_features": ("f", (1, 80, 3000))}


def wrap(make, call, x, **fixed):
    """make(): a module; call(module, x, **fixed tensors) -> outputs; x: (kind, shape); fixed: name -> (kind, shape[, high])."""

    def made():
        import torch

        class Part(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = make()
                for key, (kind, shape, *high) in fixed.items():
                    self.register_buffer(
                        key,
                        (
                            torch.randn(*shape)
                            if kind == "f"
                            else (
                                torch.ones(*shape)
                                if kind == "1"
                                else torch.full(shape, high[0]) if kind == "v" else torch.randint(0, high[0], shape) if high else torch.full(shape, 7)
                            )
                        ),
                    )

            def forward(self, x):
                return call(self.model, x, **{key: getattr(self, key) for key in fixed})

        return Part()

    return made, {"x": x}


def hf(model, config, **options):
    def make():
        import transformers

        c = options.pop("config", None) or getattr(transformers, config)(**{k: v() if callable(v) else v for k, v in options.items()})
        return getattr(transformers, model)(c)

    return make


def moe(model, config, length=16, **options):
    """A mixture of experts whose experts are gathered and multiplied as a batch: the form that torch.export takes."""
    make, inputs = text(model, config, length, **options)

    def made():
        m = make()
        m.set_experts_implementation("batched_mm")
        return m

    return made, inputs


def cfg(name, **options):
    def make():
        import transformers

        return getattr(transformers, name)(**{k: v() if callable(v) else v for k, v in options.items()})

    return make


def df(name, **options):
    def make():
        import diffusers

        return getattr(diffusers, name)(**options)

    return make


def of(make, *path):
    """A part of a model."""

    def part():
        m = make()
        for p in path:
            m = getattr(m, p)
        return m

    return part


def plain(m, x):
    return m(x)


def package(module, name, **options):
    def make():
        import importlib

        m = importlib.import_module(module)
        for p in name.split("."):
            m = getattr(m, p)
        return m(**options)

    return make


def denoise(name, size, fixed, **options):
    """As diffusion, but fixed may have plain numbers too."""
    numbers = {k: v for k, v in fixed.items() if not isinstance(v, tuple)}
    if not numbers:
        return diffusion(name, size, fixed, **options)
    return wrap(
        df(name, **options),
        lambda m, x, **t: m(x, **{k: v for k, v in t.items()}, **numbers, return_dict=False),
        ("f", size),
        **{k: v for k, v in fixed.items() if isinstance(v, tuple)},
    )
