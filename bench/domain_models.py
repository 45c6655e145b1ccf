# SPDX-License-Identifier: Apache-2.0
"""The fourth set of gpu_wide.py, by domain: speech, detection and segmentation, video, image generation, text, series,
medicine. CASES as in wide_models.py; SCRIPTED are those that torch.jit.trace exports."""
from model_makers import cfg, denoise, df, hf, image, moe, of, package, plain, speech, text, video, wrap


def crnn():
    import torch
    from torch import nn

    class CRNN(nn.Module):
        """CRNN of Shi et al.: 32 x 320 grey image, conv + 2 bidirectional LSTMs of 256."""
        def __init__(self):
            super().__init__()
            def c(i, o, k=3, p=1, bn=False):
                return [nn.Conv2d(i, o, k, 1, p)] + ([nn.BatchNorm2d(o)] if bn else []) + [nn.ReLU()]
            self.cnn = nn.Sequential(*c(1, 64), nn.MaxPool2d(2), *c(64, 128), nn.MaxPool2d(2), *c(128, 256, bn=True), *c(256, 256),
                                     nn.MaxPool2d((2, 2), (2, 1), (0, 1)), *c(256, 512, bn=True), *c(512, 512),
                                     nn.MaxPool2d((2, 2), (2, 1), (0, 1)), *c(512, 512, 2, 0, bn=True))
            self.r1 = nn.LSTM(512, 256, bidirectional=True)
            self.l1 = nn.Linear(512, 256)
            self.r2 = nn.LSTM(256, 256, bidirectional=True)
            self.l2 = nn.Linear(512, 97)

        def forward(self, x):
            y = self.cnn(x).squeeze(2).permute(2, 0, 1)
            return self.l2(self.r2(self.l1(self.r1(y)[0]))[0]).log_softmax(2)
    return CRNN()


def vad():
    import torch
    from torch import nn

    class VAD(nn.Module):
        """As Silero's: an STFT by convolution, four 1-D convolutions, an LSTM of 128."""
        def __init__(self):
            super().__init__()
            self.stft = nn.Conv1d(1, 258, 256, 128, bias=False)
            self.enc = nn.Sequential(*[layer for i, o, s in ((129, 128, 1), (128, 64, 2), (64, 64, 2), (64, 128, 1))
                                       for layer in (nn.Conv1d(i, o, 3, s, 1), nn.ReLU())])
            self.lstm = nn.LSTM(128, 128, batch_first=True)
            self.out = nn.Conv1d(128, 1, 1)

        def forward(self, x):
            y = self.stft(torch.nn.functional.pad(x, (0, 64), mode="reflect").unsqueeze(1))
            y = (y[:, :129] ** 2 + y[:, 129:] ** 2).sqrt()
            y, _ = self.lstm(self.enc(y).transpose(1, 2))
            return torch.sigmoid(self.out(torch.relu(y.transpose(1, 2))))
    return VAD()


def tagger():
    import torch
    from torch import nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(20000, 300)
            self.r = nn.GRU(300, 256, num_layers=2, bidirectional=True, batch_first=True)
            self.o = nn.Linear(512, 17)

        def forward(self, x):
            return self.o(self.r(self.e(x))[0])
    return Tagger()


def lstm_lm():
    from torch import nn

    class LM(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(10000, 650)
            self.r = nn.LSTM(650, 650, num_layers=2, batch_first=True)
            self.o = nn.Linear(650, 10000)

        def forward(self, x):
            return self.o(self.r(self.e(x))[0])
    return LM()


def segmenter():
    """As pyannote's: SincNet-like convolutions, 4 bidirectional LSTMs of 128."""
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Sequential(nn.InstanceNorm1d(1, affine=True), nn.Conv1d(1, 80, 251, 10), nn.MaxPool1d(3), nn.InstanceNorm1d(80, affine=True),
        nn.LeakyReLU(),
                                   nn.Conv1d(80, 60, 5), nn.MaxPool1d(3), nn.InstanceNorm1d(60, affine=True), nn.LeakyReLU(),
                                   nn.Conv1d(60, 60, 5), nn.MaxPool1d(3), nn.InstanceNorm1d(60, affine=True), nn.LeakyReLU())
            self.r = nn.LSTM(60, 128, num_layers=4, bidirectional=True, batch_first=True)
            self.l = nn.Sequential(nn.Linear(256, 128), nn.LeakyReLU(), nn.Linear(128, 128), nn.LeakyReLU(), nn.Linear(128, 7), nn.LogSoftmax(-1))

        def forward(self, x):
            return self.l(self.r(self.c(x).transpose(1, 2))[0])
    return Net()


def gnn():
    import torch
    from torch_geometric.nn import GAT
    return GAT(64, 128, 3, 32, heads=4)


def detection(name, size):
    def call(m, x):
        return m([x[0]])[0]
    def make():
        import torchvision
        options = {"box_score_thresh": 0.0} if name.startswith("faster") else {"score_thresh": 0.0}
        return getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, **options)
    return wrap(make, call, ("f", (1, 3, size, size)))


def yolo(name):
    def make():
        from ultralytics.nn.tasks import DetectionModel, PoseModel, SegmentationModel
        kind = SegmentationModel if "seg" in name else PoseModel if "pose" in name else DetectionModel
        m = kind(name + ".yaml", verbose=False).eval()
        m = m.fuse(verbose=False)
        for k in m.modules():
            if hasattr(k, "export"):
                k.export, k.format = True, "onnx"
        return m
    return make


MOE = dict(hidden_size=768, num_hidden_layers=2, num_attention_heads=12, num_key_value_heads=4, vocab_size=8000, use_cache=False)

CASES = {
    # --- speech and audio
    "wav2vec2_conformer": speech("Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", "input_values", (1, 32000), num_hidden_layers=3,
        position_embeddings_type="relative"),
    "wavlm": speech("WavLMModel", "WavLMConfig", "input_values", (1, 32000), num_hidden_layers=4),
    "ta_conformer": wrap(package("torchaudio.models", "Conformer", input_dim=256, num_heads=4, ffn_dim=1024, num_layers=4,
        depthwise_conv_kernel_size=31),
                         lambda m, x, n: m(x, n), ("f", (1, 400, 256)), n=("v", (1,), 400)),
    "parakeet": speech("ParakeetEncoder", "ParakeetEncoderConfig", "input_features", (1, 800, 80), hidden_size=512, num_hidden_layers=4,
        num_attention_heads=8, intermediate_size=2048),
    "whisper_decoder": wrap(of(hf("WhisperModel", "WhisperConfig", d_model=512, encoder_layers=1, encoder_attention_heads=8, encoder_ffn_dim=2048,
        decoder_layers=4, decoder_attention_heads=8, decoder_ffn_dim=2048), "decoder"),
                            lambda m, x, ids: m(input_ids=ids, encoder_hidden_states=x, use_cache=False), ("f", (1, 1500, 512)),
        ids=("i", (1, 16), 1000)),
    "hifigan": wrap(hf("SpeechT5HifiGan", "SpeechT5HifiGanConfig"), plain, ("f", (1, 100, 80))),
    "univnet": wrap(hf("UnivNetModel", "UnivNetConfig"), lambda m, x, noise: m(input_features=x, noise_sequence=noise), ("f", (1, 60, 100)),
        noise=("f", (1, 60, 64))),
    "encodec_encoder": wrap(of(hf("EncodecModel", "EncodecConfig"), "encoder"), plain, ("f", (1, 1, 24000))),
    "encodec_decoder": wrap(of(hf("EncodecModel", "EncodecConfig"), "decoder"), plain, ("f", (1, 128, 75))),
    "dac_encoder": wrap(of(hf("DacModel", "DacConfig"), "encoder"), plain, ("f", (1, 1, 16384))),
    "dac_decoder": wrap(of(hf("DacModel", "DacConfig"), "decoder"), plain, ("f", (1, 1024, 32))),
    "mimi_encoder": wrap(of(hf("MimiModel", "MimiConfig"), "encoder"), plain, ("f", (1, 1, 24000))),
    "vits_decoder": wrap(of(hf("VitsModel", "VitsConfig"), "decoder"), plain, ("f", (1, 192, 100))),
    "vits_flow": wrap(of(hf("VitsModel", "VitsConfig"), "flow"), lambda m, x, mask: m(x, mask, reverse=True), ("f", (1, 192, 200)),
        mask=("1", (1, 1, 200))),
    "vits_text": wrap(of(hf("VitsModel", "VitsConfig", vocab_size=1000), "text_encoder"), lambda m, x, mask: m(x, mask), ("i", (1, 100)),
        mask=("1", (1, 100, 1))),
    "fastspeech2_encoder": wrap(of(hf("FastSpeech2ConformerModel", "FastSpeech2ConformerConfig", vocab_size=1000), "encoder"), plain,
        ("i", (1, 100))),
    "convtasnet": wrap(package("torchaudio.models", "ConvTasNet"), plain, ("f", (1, 1, 16000))),
    "clap_audio": wrap(hf("ClapAudioModel", "ClapAudioConfig"), lambda m, x: m(input_features=x, is_longer=None), ("f", (1, 1, 1001, 64))),
    "moonshine_encoder": wrap(of(hf("MoonshineModel", "MoonshineConfig"), "encoder"), lambda m, x: m(x), ("f", (1, 32000))),
    "wav2letter": wrap(package("torchaudio.models", "Wav2Letter", num_classes=40, input_type="mfcc", num_features=80), plain, ("f", (1, 80, 400))),
    "crnn": wrap(crnn, plain, ("f", (1, 1, 32, 320))),
    "vad": wrap(vad, plain, ("f", (1, 16000))),
    "speaker_segmenter": wrap(segmenter, plain, ("f", (1, 1, 80000))),
    "deepspeech": wrap(package("torchaudio.models", "DeepSpeech", n_feature=80, n_hidden=1024), plain, ("f", (1, 1, 200, 80))),
    "gru_tagger": wrap(tagger, plain, ("i", (1, 64))),
    "lstm_lm": wrap(lstm_lm, plain, ("i", (1, 64))),
    "musicgen_decoder": wrap(of(hf("MusicgenForCausalLM", "MusicgenDecoderConfig", num_hidden_layers=3), "model"),
                             lambda m, x, ids: m(input_ids=ids, encoder_hidden_states=x, use_cache=False), ("f", (1, 64, 1024)),
        ids=("i", (4, 32), 1000)),
    "seamless_speech": wrap(of(hf("SeamlessM4Tv2ForSpeechToText", "SeamlessM4Tv2Config", speech_encoder_layers=2, encoder_layers=1, decoder_layers=1,
        vocab_size=2000), "speech_encoder"),
                            lambda m, x: m(input_features=x), ("f", (1, 300, 160))),
    # --- detection, segmentation, matting, depth
    "detr": image("DetrForObjectDetection", "DetrConfig", 512, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
        backbone_config={"model_type": "resnet", "out_features": ["stage4"]}),
    "conditional_detr": image("ConditionalDetrForObjectDetection", "ConditionalDetrConfig", 512, use_timm_backbone=False,
        use_pretrained_backbone=False, backbone=None, backbone_config={"model_type": "resnet", "out_features": ["stage4"]}),
    "deformable_detr": image("DeformableDetrForObjectDetection", "DeformableDetrConfig", 512, use_timm_backbone=False, use_pretrained_backbone=False,
        backbone=None, encoder_layers=3, decoder_layers=3, backbone_config={"model_type": "resnet", "out_features": ["stage2", "stage3", "stage4"]}),
    "rt_detr": image("RTDetrForObjectDetection", "RTDetrConfig", 640),
    "d_fine": image("DFineForObjectDetection", "DFineConfig", 640),
    "yolov8n": wrap(yolo("yolov8n"), plain, ("f", (1, 3, 640, 640))),
    "yolo11n": wrap(yolo("yolo11n"), plain, ("f", (1, 3, 640, 640))),
    "yolo12n": wrap(yolo("yolo12n"), plain, ("f", (1, 3, 640, 640))),
    "yolo11n_seg": wrap(yolo("yolo11n-seg"), plain, ("f", (1, 3, 640, 640))),
    "yolov8n_pose": wrap(yolo("yolov8n-pose"), plain, ("f", (1, 3, 640, 640))),
    "yolov10n": wrap(yolo("yolov10n"), plain, ("f", (1, 3, 640, 640))),
    "ssdlite": detection("ssdlite320_mobilenet_v3_large", 320),
    "retinanet": detection("retinanet_resnet50_fpn_v2", 512),
    "fasterrcnn": detection("fasterrcnn_mobilenet_v3_large_320_fpn", 320),
    "fcos": detection("fcos_resnet50_fpn", 512),
    "sam_encoder": wrap(of(hf("SamModel", "SamConfig", vision_config=cfg("SamVisionConfig", num_hidden_layers=4, global_attn_indexes=[1, 3])),
        "vision_encoder"), plain, ("f", (1, 3, 1024, 1024))),
    "sam_decoder": wrap(hf("SamModel", "SamConfig", vision_config=cfg("SamVisionConfig", num_hidden_layers=1, global_attn_indexes=[0])),
                        lambda m, x, points: m(image_embeddings=x, input_points=points), ("f", (1, 256, 64, 64)), points=("f", (1, 1, 2, 2))),
    "sam2_encoder": wrap(of(hf("Sam2Model", "Sam2Config"), "vision_encoder"), plain, ("f", (1, 3, 512, 512))),
    "mask2former": image("Mask2FormerForUniversalSegmentation", "Mask2FormerConfig", 256, decoder_layers=4, encoder_layers=3),
    "depth_anything": image("DepthAnythingForDepthEstimation", "DepthAnythingConfig", 364, reassemble_hidden_size=384,
        neck_hidden_sizes=[48, 96, 192, 384], fusion_hidden_size=64,
                            backbone_config={"model_type": "dinov2", "hidden_size": 384, "num_attention_heads": 6, "image_size": 518,
        "out_features": ["stage3", "stage6", "stage9", "stage12"], "apply_layernorm": True, "reshape_hidden_states": False}),
    "glpn": image("GLPNForDepthEstimation", "GLPNConfig", 480),
    "upernet_swin": image("UperNetForSemanticSegmentation", "UperNetConfig", 512, use_pretrained_backbone=False, backbone=None,
        backbone_config={"model_type": "swin", "out_features": ["stage1", "stage2", "stage3", "stage4"]}, auxiliary_in_channels=384),
    "vitpose": image("VitPoseForPoseEstimation", "VitPoseConfig", 256, use_pretrained_backbone=False, backbone=None,
        backbone_config={"model_type": "vitpose_backbone", "image_size": [256, 256], "num_hidden_layers": 4, "out_indices": [4]}),
    "superpoint": wrap(of(hf("SuperPointForKeypointDetection", "SuperPointConfig"), "encoder"), lambda m, x: m(x, return_dict=False),
        ("f", (1, 1, 480, 640))),
    "smp_unet": wrap(package("segmentation_models_pytorch", "Unet", encoder_name="resnet34", encoder_weights=None), plain, ("f", (1, 3, 512, 512))),
    "smp_fpn": wrap(package("segmentation_models_pytorch", "FPN", encoder_name="efficientnet-b0", encoder_weights=None), plain,
        ("f", (1, 3, 512, 512))),
    "smp_pspnet": wrap(package("segmentation_models_pytorch", "PSPNet", encoder_name="resnet34", encoder_weights=None), plain,
        ("f", (1, 3, 512, 512))),
    "smp_deeplabv3plus": wrap(package("segmentation_models_pytorch", "DeepLabV3Plus", encoder_name="resnet34", encoder_weights=None), plain,
        ("f", (1, 3, 512, 512))),
    "smp_unetplusplus": wrap(package("segmentation_models_pytorch", "UnetPlusPlus", encoder_name="resnet34", encoder_weights=None), plain,
        ("f", (1, 3, 256, 256))),
    "smp_manet": wrap(package("segmentation_models_pytorch", "MAnet", encoder_name="resnet34", encoder_weights=None), plain, ("f", (1, 3, 256, 256))),
    "smp_unet_scse": wrap(package("segmentation_models_pytorch", "Unet", encoder_name="mobilenet_v2", encoder_weights=None,
        decoder_attention_type="scse"), plain, ("f", (1, 3, 512, 512))),
    # --- video, flow
    "videomae": wrap(hf("VideoMAEModel", "VideoMAEConfig", num_hidden_layers=3), plain, ("f", (1, 16, 3, 224, 224))),
    "timesformer": wrap(hf("TimesformerModel", "TimesformerConfig", num_hidden_layers=3), plain, ("f", (1, 8, 3, 224, 224))),
    "vivit": wrap(hf("VivitModel", "VivitConfig", num_hidden_layers=2), plain, ("f", (1, 32, 3, 224, 224))),
    "mvit_v2_s": video("mvit_v2_s", 224),
    "swin3d_t": video("swin3d_t", 224, 8),
    # --- image generation
    "vae_encoder": wrap(of(df("AutoencoderKL", block_out_channels=(128, 256, 512, 512), layers_per_block=2,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, latent_channels=4), "encoder"), plain,
        ("f", (1, 3, 256, 256))),
    "sdxl_unet": denoise("UNet2DConditionModel", (2, 4, 64, 64), {"timestep": ("i", (2,)), "encoder_hidden_states": ("f", (2, 77, 2048))},
                         block_out_channels=(320, 640), down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
                         layers_per_block=1, transformer_layers_per_block=(1, 2), cross_attention_dim=2048, attention_head_dim=(5, 10),
        use_linear_projection=True, sample_size=64),
    "controlnet": wrap(df("ControlNetModel", block_out_channels=(320, 640), down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        layers_per_block=1, cross_attention_dim=768),
                       lambda m, x, **fixed: m(x, **fixed, return_dict=False)[1], ("f", (2, 4, 64, 64)), timestep=("i", (2,)),
        encoder_hidden_states=("f", (2, 77, 768)), controlnet_cond=("f", (2, 3, 512, 512))),
    "sana": denoise("SanaTransformer2DModel", (2, 32, 32, 32), {"encoder_hidden_states": ("f", (2, 120, 2304)), "timestep": ("i", (2,))},
        num_layers=2, num_attention_heads=36, num_cross_attention_heads=16, cross_attention_head_dim=72, cross_attention_dim=1152),
    "auraflow": denoise("AuraFlowTransformer2DModel", (1, 4, 64, 64), {"encoder_hidden_states": ("f", (1, 128, 2048)), "timestep": ("f", (1,))},
        num_mmdit_layers=1, num_single_dit_layers=2, attention_head_dim=256, num_attention_heads=4, caption_projection_dim=1024),
    "cogvideox": denoise("CogVideoXTransformer3DModel", (1, 4, 16, 32, 32), {"encoder_hidden_states": ("f", (1, 226, 4096)), "timestep": ("i", (1,))},
        num_layers=2, num_attention_heads=16, sample_width=32, sample_height=32, sample_frames=13),
    "vq_model": wrap(df("VQModel", block_out_channels=(128, 256), down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2, layers_per_block=2, latent_channels=3, num_vq_embeddings=8192, vq_embed_dim=4), lambda m, x: m(x),
        ("f", (1, 3, 128, 128))),
    "dc_ae_decoder": wrap(of(df("AutoencoderDC", latent_channels=32,
        decoder_block_types=("ResBlock", "ResBlock", "ResBlock", "EfficientViTBlock", "EfficientViTBlock", "EfficientViTBlock"),
        decoder_layers_per_block=(1, 1, 1, 1, 1, 1), encoder_layers_per_block=(1,) * 6, decoder_qkv_multiscales=((), (), (), (5,), (5,), (5,))),
        "decoder"), plain, ("f", (1, 32, 8, 8))),
    "wan_vae_decoder": wrap(of(df("AutoencoderKLWan", base_dim=48), "decoder"), lambda m, x: m(x), ("f", (1, 16, 3, 32, 32))),
    "cogvideox_vae_decoder": wrap(of(df("AutoencoderKLCogVideoX", block_out_channels=(64, 128, 128, 256), layers_per_block=1), "decoder"), lambda m,
        x: m(x), ("f", (1, 16, 3, 24, 24))),
    "oobleck_decoder": wrap(of(df("AutoencoderOobleck"), "decoder"), plain, ("f", (1, 64, 32))),
    "stable_cascade": denoise("StableCascadeUNet", (1, 16, 24, 24), {"timestep_ratio": ("f", (1,)), "clip_text_pooled": ("f", (1, 1, 1280))},
        in_channels=16, out_channels=16, conditioning_dim=1024, block_out_channels=(512, 512), num_attention_heads=(8, 8),
        down_num_layers_per_block=(2, 2), up_num_layers_per_block=(2, 2), down_blocks_repeat_mappers=(1, 1), up_blocks_repeat_mappers=(1, 1),
        block_types_per_layer=(("SDCascadeResBlock", "SDCascadeTimestepBlock", "SDCascadeAttnBlock"),) * 2, clip_text_pooled_in_channels=1280,
        switch_level=(False,)),
    # --- text
    "t5_decoder": wrap(of(hf("T5Model", "T5Config", vocab_size=2000), "decoder"), lambda m, x,
        ids: m(input_ids=ids, encoder_hidden_states=x, use_cache=False), ("f", (1, 128, 512)), ids=("i", (1, 64), 1000)),
    "longformer": wrap(hf("LongformerModel", "LongformerConfig", num_hidden_layers=2, attention_window=256, vocab_size=8000,
        max_position_embeddings=1030, attention_probs_dropout_prob=0.0), lambda m, x: m(x), ("i", (1, 1024))),
    "big_bird": wrap(hf("BigBirdModel", "BigBirdConfig", num_hidden_layers=2, attention_type="block_sparse", vocab_size=8000), lambda m, x: m(x),
        ("i", (1, 1024))),
    "led_encoder": wrap(of(hf("LEDModel", "LEDConfig", encoder_layers=2, decoder_layers=1, vocab_size=8000, attention_window=256), "encoder"),
        lambda m, x: m(x), ("i", (1, 1024))),
    "mamba": text("MambaModel", "MambaConfig", 32, num_hidden_layers=2, vocab_size=8000, use_cache=False),
    "mamba2": text("Mamba2Model", "Mamba2Config", 256, num_hidden_layers=2, hidden_size=768, num_heads=24, head_dim=64, vocab_size=8000,
        use_cache=False, state_size=128, n_groups=1, chunk_size=64),
    "rwkv": text("RwkvModel", "RwkvConfig", 32, hidden_size=768, num_hidden_layers=2, vocab_size=8000, use_cache=False),
    "falcon_h1": text("FalconH1Model", "FalconH1Config", 128, intermediate_size=2048, mamba_d_ssm=1536, mamba_n_heads=24, mamba_d_head=64,
        mamba_d_state=64, **MOE),
    "lfm2": text("Lfm2Model", "Lfm2Config", intermediate_size=3072, **{**MOE, "num_hidden_layers": 4},
        layer_types=["conv", "conv", "full_attention", "conv"]),
    "mixtral": moe("MixtralModel", "MixtralConfig", 32, intermediate_size=1536, num_local_experts=8, **MOE),
    "qwen2_moe": moe("Qwen2MoeModel", "Qwen2MoeConfig", 32, intermediate_size=1536, moe_intermediate_size=512, shared_expert_intermediate_size=1024,
        num_experts=16, num_experts_per_tok=4, **MOE),
    "olmoe": moe("OlmoeModel", "OlmoeConfig", 32, intermediate_size=512, num_experts=16, num_experts_per_tok=4, **MOE),
    "gpt_oss": moe("GptOssModel", "GptOssConfig", 32, intermediate_size=768, num_local_experts=8, num_experts_per_tok=4, head_dim=64, **MOE),
    "deepseek_v3": moe("DeepseekV3Model", "DeepseekV3Config", 32, intermediate_size=1536, moe_intermediate_size=512, n_routed_experts=8,
        num_experts_per_tok=2, n_group=2, topk_group=1, kv_lora_rank=256, q_lora_rank=384, first_k_dense_replace=1,
        **{**MOE, "num_key_value_heads": 12}),
    "switch_encoder": wrap(hf("SwitchTransformersEncoderModel", "SwitchTransformersConfig", num_layers=2, num_sparse_encoder_layers=1, num_experts=8,
        vocab_size=8000), lambda m, x: m(x), ("i", (1, 64))),
    "siglip_vision": image("SiglipVisionModel", "SiglipVisionConfig", num_hidden_layers=4),
    "siglip_text": text("SiglipTextModel", "SiglipTextConfig", 64, num_hidden_layers=4, vocab_size=8000, eos_token_id=2, bos_token_id=1,
        pad_token_id=1),
    "blip": wrap(hf("BlipModel", "BlipConfig", vision_config=lambda: {"num_hidden_layers": 3},
        text_config=lambda: {"num_hidden_layers": 3, "vocab_size": 8000}), lambda m, x,
        ids: (lambda o: o.logits_per_image)(m(pixel_values=x, input_ids=ids)), ("f", (1, 3, 384, 384)), ids=("i", (2, 32), 1000)),
    "qformer": wrap(hf("Blip2QFormerModel", "Blip2QFormerConfig", num_hidden_layers=4), lambda m, x, q: m(query_embeds=q, encoder_hidden_states=x),
        ("f", (1, 257, 1408)), q=("f", (1, 32, 768))),
    "layoutlmv3": wrap(hf("LayoutLMv3Model", "LayoutLMv3Config", num_hidden_layers=4, vocab_size=8000, pad_token_id=1), lambda m, x, ids,
        bbox: m(input_ids=ids, bbox=bbox, pixel_values=x), ("f", (1, 3, 224, 224)), ids=("i", (1, 128), 1000), bbox=("i", (1, 128, 4))),
    "layoutlm": text("LayoutLMModel", "LayoutLMConfig", num_hidden_layers=3),
    "perceiver": wrap(hf("PerceiverModel", "PerceiverConfig", d_model=768, num_self_attends_per_block=4, num_latents=256, d_latents=1280), lambda m,
        x: m(inputs=x), ("f", (1, 1024, 768))),
    "esm": text("EsmModel", "EsmConfig", 256, vocab_size=1001, hidden_size=480, num_hidden_layers=4, num_attention_heads=20, intermediate_size=1920,
        position_embedding_type="rotary", mask_token_id=32, pad_token_id=1, token_dropout=True),
    "prophetnet_enc": text("ProphetNetEncoder", "ProphetNetConfig", num_encoder_layers=2, vocab_size=8000),
    # --- time series, tabular, graphs
    "patchtst": wrap(hf("PatchTSTForPrediction", "PatchTSTConfig", num_input_channels=7, context_length=512, prediction_length=96, patch_length=16,
        patch_stride=8, d_model=128, num_attention_heads=16, num_hidden_layers=3, ffn_dim=256), lambda m, x: m(past_values=x), ("f", (1, 512, 7))),
    "patchtsmixer": wrap(hf("PatchTSMixerForPrediction", "PatchTSMixerConfig", num_input_channels=7, context_length=512, prediction_length=96,
        patch_length=16, patch_stride=16, d_model=64), lambda m, x: m(past_values=x), ("f", (1, 512, 7))),
    "tab_transformer": wrap(package("tab_transformer_pytorch", "FTTransformer", categories=(), num_continuous=32, dim=192, dim_out=1, depth=3,
        heads=8), lambda m, x, c: m(c, x), ("f", (64, 32)), c=("i", (64, 0), 1)),
    "gat": wrap(gnn, lambda m, x, e: m(x, e), ("f", (2000, 64)), e=("i", (2, 10000), 2000)),
    # --- medical
    "monai_unet": wrap(package("monai.networks.nets", "UNet", spatial_dims=3, in_channels=1, out_channels=2, channels=(16, 32, 64, 128, 256),
        strides=(2, 2, 2, 2), num_res_units=2), plain, ("f", (1, 1, 96, 96, 96))),
    "monai_segresnet": wrap(package("monai.networks.nets", "SegResNet", spatial_dims=3, init_filters=16, in_channels=1, out_channels=3), plain,
        ("f", (1, 1, 64, 64, 64))),
    "monai_swinunetr": wrap(package("monai.networks.nets", "SwinUNETR", in_channels=1, out_channels=2, feature_size=24), plain,
        ("f", (1, 1, 64, 64, 64))),
    "monai_unetr": wrap(package("monai.networks.nets", "UNETR", in_channels=1, out_channels=2, img_size=(64, 64, 64)), plain,
        ("f", (1, 1, 64, 64, 64))),
    "monai_dynunet": wrap(package("monai.networks.nets", "DynUNet", spatial_dims=3, in_channels=1, out_channels=2, kernel_size=[3, 3, 3, 3],
        strides=[1, 2, 2, 2], upsample_kernel_size=[2, 2, 2]), plain, ("f", (1, 1, 64, 64, 64))),
    "attention_unet": wrap(package("monai.networks.nets", "AttentionUnet", spatial_dims=2, in_channels=1, out_channels=2, channels=(32, 64, 128, 256),
        strides=(2, 2, 2)), plain, ("f", (1, 1, 256, 256))),
}
# Exported by torch.jit.trace, as such models are shipped: recurrent layers stay LSTM and GRU nodes.
SCRIPTED = {"mimi_encoder", "crnn", "vad", "speaker_segmenter", "deepspeech", "gru_tagger", "lstm_lm", "encodec_encoder", "encodec_decoder",
            "ssdlite", "retinanet", "fasterrcnn", "fcos", "yolov8n", "yolo11n", "yolo12n", "yolo11n_seg", "yolov8n_pose", "yolov10n"}
