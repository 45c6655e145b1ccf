# SPDX-License-Identifier: Apache-2.0
"""The models of gpu_wide.py: by name, a function that makes one in float32 with random weights, and its one input
as {name: (f for floats or i for token ids, shape)}; an input named x is given by position. Models are left out whose
halves PyTorch itself does not run."""


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
        return transformers.WhisperModel(transformers.WhisperConfig(
            d_model=512, encoder_layers=6, encoder_attention_heads=8, encoder_ffn_dim=2048,
            decoder_layers=1, decoder_attention_heads=8, decoder_ffn_dim=2048)).encoder
    return make, {"input_features": ("f", (1, 80, 3000))}


# A decoder without a cache, of 6 small layers.
SMALL = {"hidden_size": 768, "num_hidden_layers": 6, "num_attention_heads": 12, "vocab_size": 32000, "use_cache": False}

CASES = {
    "densenet121": vision("densenet121"),
    "inception_v3": vision("inception_v3", 299, init_weights=False),
    "googlenet": vision("googlenet", init_weights=False, aux_logits=False),
    "shufflenet_v2": vision("shufflenet_v2_x1_0"),
    "squeezenet1_1": vision("squeezenet1_1"),
    "mnasnet1_0": vision("mnasnet1_0"),
    "mobilenet_v2_b8": vision("mobilenet_v2", batch=8),
    "regnet_y_400mf": vision("regnet_y_400mf"),
    "resnext50": vision("resnext50_32x4d"),
    "resnet18_b8": vision("resnet18", batch=8),
    "vgg16": vision("vgg16"),
    "convnext_tiny": vision("convnext_tiny"),
    "efficientnet_v2_s": vision("efficientnet_v2_s", 384),
    "swin_v2_t": vision("swin_v2_t", 256),
    "maxvit_t": vision("maxvit_t"),
    "deeplabv3_mobilenet": segmentation("deeplabv3_mobilenet_v3_large"),
    "fcn_resnet50": segmentation("fcn_resnet50"),
    "distilbert": text("DistilBertModel", "DistilBertConfig"),
    "electra_small_b8": text("ElectraModel", "ElectraConfig", batch=8),
    "albert": text("AlbertModel", "AlbertConfig", hidden_size=768, num_attention_heads=12, intermediate_size=3072),
    "deberta_v2": text("DebertaV2Model", "DebertaV2Config", hidden_size=384, num_hidden_layers=6, num_attention_heads=6,
                       intermediate_size=1536, relative_attention=True, pos_att_type=["p2c", "c2p"], vocab_size=32000),
    "gpt2": text("GPT2Model", "GPT2Config", use_cache=False),
    "t5_encoder": text("T5EncoderModel", "T5Config"),
    "qwen2": text("Qwen2Model", "Qwen2Config", hidden_size=896, num_hidden_layers=8, num_attention_heads=14,
                  num_key_value_heads=2, intermediate_size=4864, vocab_size=32000, use_cache=False),
    "clip_text": text("CLIPTextModel", "CLIPTextConfig", 77),
    "clip_vision": image("CLIPVisionModel", "CLIPVisionConfig"),
    "dinov2_small": image("Dinov2Model", "Dinov2Config", hidden_size=384, num_attention_heads=6),
    "segformer_b0": image("SegformerModel", "SegformerConfig", 512),
    "mobilevit": image("MobileViTModel", "MobileViTConfig", 256),
    "convnext_v2": image("ConvNextV2Model", "ConvNextV2Config"),
    "whisper_encoder": whisper_encoder(),
    "wav2vec2": speech("Wav2Vec2Model", "Wav2Vec2Config", "input_values", (1, 32000), num_hidden_layers=6),
    **{name: zoo(name, size) for name, size in (
        ("hrnet_w18_small_v2", 224), ("rexnet_100", 224), ("res2net50_26w_4s", 224), ("dm_nfnet_f0", 256),
        ("ghostnetv2_100", 224), ("edgenext_x_small", 256), ("xcit_tiny_12_p16_224", 224),
        ("gcvit_xxtiny", 224), ("poolformer_s12", 224), ("mixer_b16_224", 224), ("gmlp_s16_224", 224),
        ("convmixer_768_32", 224), ("fastvit_t8", 256), ("repvit_m1", 224), ("eva02_tiny_patch14_224", 224),
        ("nextvit_small", 224), ("mixnet_s", 224), ("cait_xxs24_224", 224), ("skresnet18", 224), ("dpn68", 224),
        ("focalnet_tiny_srf", 224), ("coat_lite_tiny", 224), ("pit_s_224", 224), ("resnest26d", 224))},
    "r3d_18": video("r3d_18", 112),
    "s3d": video("s3d", 224),
    "ast": speech("ASTModel", "ASTConfig", "input_values", (1, 1024, 128)),
    "hubert": speech("HubertModel", "HubertConfig", "input_values", (1, 32000), num_hidden_layers=6),
    "yolos": image("YolosModel", "YolosConfig", 512, image_size=[512, 512]),
    "dpt": image("DPTForDepthEstimation", "DPTConfig", 384),
    "pvt_v2": image("PvtV2Model", "PvtV2Config"),
    "swin2_super_resolution": image("Swin2SRForImageSuperResolution", "Swin2SRConfig", 64, num_channels=3),
    "phi": text("PhiModel", "PhiConfig", intermediate_size=3072, **SMALL),
    "gpt_neox": text("GPTNeoXModel", "GPTNeoXConfig", intermediate_size=3072, **SMALL),
    "falcon": text("FalconModel", "FalconConfig", **SMALL),
    "bloom": text("BloomModel", "BloomConfig", hidden_size=768, n_layer=6, n_head=12, vocab_size=32000, use_cache=False),
    "opt": text("OPTModel", "OPTConfig", use_cache=False),
    "gemma2": text("Gemma2Model", "Gemma2Config", head_dim=64, num_key_value_heads=4, intermediate_size=3072, **SMALL),
    "xlnet": text("XLNetModel", "XLNetConfig", d_model=768, n_layer=6, n_head=12, d_inner=3072),
    "mobilebert": text("MobileBertModel", "MobileBertConfig"),
    "convbert": text("ConvBertModel", "ConvBertConfig"),
    "squeezebert": text("SqueezeBertModel", "SqueezeBertConfig"),
    **{name: zoo(name, size) for name, size in (
        ("efficientvit_b0", 224),
        ("davit_tiny", 224), ("maxxvit_rmlp_nano_rw_256", 256), ("coatnet_nano_rw_224", 224),
        ("volo_d1_224", 224), ("crossvit_tiny_240", 240), ("visformer_small", 224),
        ("mvitv2_tiny", 224), ("tnt_s_patch16_224", 224), ("sequencer2d_s", 224), ("resmlp_12_224", 224),
        ("inception_next_tiny", 224), ("mambaout_tiny", 224), ("starnet_s1", 224), ("mobileone_s0", 224),
        ("mobilenetv4_hybrid_medium", 224), ("hgnetv2_b0", 224), ("lcnet_050", 224), ("cspdarknet53", 256),
        ("ese_vovnet39b", 224), ("dla34", 224), ("selecsls42b", 224), ("repvgg_a0", 224), ("regnetz_b16", 224),
        ("resnetv2_50x1_bit", 224), ("nf_resnet50", 224), ("eca_botnext26ts_256", 256), ("halonet26t", 256),
        ("lambda_resnet26t", 256), ("beit_base_patch16_224", 224), ("swiftformer_xs", 224), ("shvit_s1", 224),
        ("rdnet_tiny", 224), ("xception41", 299), ("inception_resnet_v2", 299), ("mobilevitv2_050", 256))},
    "lraspp": segmentation("lraspp_mobilenet_v3_large"),
    "swinir": restorer("SwinIR", "SwinIR", 64, embed_dim=60, depths=[6] * 4, num_heads=[6] * 4, window_size=8,
                       upscale=2, upsampler="pixelshuffledirect"),
    "hat": restorer("HAT", "HAT", 64, embed_dim=180, depths=(6, 6), num_heads=(6, 6), window_size=16, upscale=4),
    "dat": restorer("DAT", "DAT", 64, upscale=2, depth=[2, 2], num_heads=[6, 6], embed_dim=180),
    "nafnet": restorer("NAFNet", "NAFNet", 256, width=32, enc_blk_nums=[2, 2, 4, 8], middle_blk_num=12,
                       dec_blk_nums=[2, 2, 2, 2]),
    "scunet": restorer("SCUNet", "SCUNet", 128),
    "omnisr": restorer("OmniSR", "OmniSR", 64),
    "realcugan": restorer("RealCUGAN", "UpCunet2x", 128),
    "plksr": restorer("PLKSR", "PLKSR", 128),
    "esrgan": restorer("ESRGAN", "RRDBNet", 128, num_blocks=8),
    "srvgg": restorer("Compact", "SRVGGNetCompact", 256),
    "vae_decoder": image_decoder("AutoencoderKL", block_out_channels=(128, 256, 512, 512), layers_per_block=2,
                                 down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
                                 latent_channels=4),
    "taesd_decoder": image_decoder("AutoencoderTiny"),
    "dit": diffusion("DiTTransformer2DModel", (2, 4, 32, 32), {"timestep": ("i", (2,)), "class_labels": ("i", (2,))},
                     num_layers=8, sample_size=32, in_channels=4, out_channels=8),
    "sd3": diffusion("SD3Transformer2DModel", (2, 16, 64, 64),
                     {"encoder_hidden_states": ("f", (2, 154, 1536)), "pooled_projections": ("f", (2, 2048)),
                      "timestep": ("i", (2,))},
                     num_layers=6, num_attention_heads=16, joint_attention_dim=1536, caption_projection_dim=1024,
                     sample_size=64),
    "mpnet": text("MPNetModel", "MPNetConfig"),
    "roformer": text("RoFormerModel", "RoFormerConfig"),
    "nystromformer": text("NystromformerModel", "NystromformerConfig"),
    "modernbert": text("ModernBertModel", "ModernBertConfig"),
    "canine": text("CanineModel", "CanineConfig"),
    "ibert": text("IBertModel", "IBertConfig"),
    "granite": text("GraniteModel", "GraniteConfig", intermediate_size=3072, num_key_value_heads=4, **SMALL),
    "stablelm": text("StableLmModel", "StableLmConfig", intermediate_size=3072, num_key_value_heads=12, **SMALL),
    "gemma3": text("Gemma3TextModel", "Gemma3TextConfig", intermediate_size=3072, num_key_value_heads=4, head_dim=64,
                   **SMALL),
    "qwen3": text("Qwen3Model", "Qwen3Config", intermediate_size=3072, num_key_value_heads=4, head_dim=64, **SMALL),
    "olmo2": text("Olmo2Model", "Olmo2Config", intermediate_size=3072, num_key_value_heads=12, **SMALL),
    "cohere": text("CohereModel", "CohereConfig", intermediate_size=3072, num_key_value_heads=4, **SMALL),
    "starcoder2": text("Starcoder2Model", "Starcoder2Config", intermediate_size=3072, num_key_value_heads=2, **SMALL),
    "persimmon": text("PersimmonModel", "PersimmonConfig", intermediate_size=3072, **SMALL),
    "phi3": text("Phi3Model", "Phi3Config", intermediate_size=3072, num_key_value_heads=12, pad_token_id=0, **SMALL),
    "gpt_bigcode": text("GPTBigCodeModel", "GPTBigCodeConfig", n_embd=768, n_layer=6, n_head=12, vocab_size=32000,
                        use_cache=False),
}
